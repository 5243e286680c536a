#pragma once
#include <string>

#include "base/error.h"
#include "model/model.h"

// The language models that are measured.
namespace lrnn::bench {

struct Shape {
  const char* name;
  const char* config;
  int64_t batch, length;
};
constexpr int64_t kVocabulary = 32000;
inline const Shape kShapes[] = {
    {"340M DeltaNet",
     "width: 1024\nlayers: 24\ntied: false\nmlp: {hidden: 2816}\n"
     "mixer: {name: delta_product, heads: 8, key_dim: 128, householders: 1",
     16, 2048},
    {"1.3B DeltaNet",
     "width: 2048\nlayers: 24\ntied: false\nmlp: {hidden: 5632}\n"
     "mixer: {name: delta_product, heads: 16, key_dim: 128, householders: 1",
     8, 2048},
    {"392M DeltaProduct3",
     "width: 1024\nlayers: 24\ntied: true\nmlp: {hidden: 2816}\n"
     "mixer: {name: delta_product, heads: 6, key_dim: 128, householders: 3",
     8, 4096},
    // To try this program with, on any GPU and in seconds.
    {"5M DeltaNet",
     "width: 128\nlayers: 2\ntied: true\nmlp: {hidden: 256}\n"
     "mixer: {name: delta_product, heads: 2, key_dim: 64, householders: 1",
     16, 512},
};

inline model::ModelConfig config_of(const Shape& shape, const std::string& accuracy = "auto") {
  return load<model::ModelConfig>(
      Section::from_text(cat(shape.config, ", accuracy: ", accuracy,
                             "}\ninit: {scheme: deltaproduct, std: 0.006}\ndecay: matrices")));
}

}  // namespace lrnn::bench
