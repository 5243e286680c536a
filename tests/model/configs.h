#pragma once
#include "model/model.h"

namespace lrnn::model {

inline ModelConfig config_of(const std::string& yaml) {
  return load<ModelConfig>(Section::from_text(yaml, "x.yaml"));
}

// Small enough for finite differences, with every part of the mixer.
inline const char* const kSmall = R"(
width: 6
layers: 2
mlp: {hidden: 5}
init: {gain: 1, std: 0.5}
mixer: {name: delta_product, heads: 2, key_dim: 3, householders: 2, forget_gate: true, output_gate: true}
)";

}  // namespace lrnn::model
