#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "model/model.h"

// Models of flash-linear-attention and transformers: a folder with config.json and the weights as
// model.safetensors, or as several files that model.safetensors.index.json names. Everything in it
// comes from somebody else, so everything is checked before anything large is taken.
//
//   model_type                                        ours
//   delta_net, gated_deltanet, gated_deltaproduct     delta_product
//   gla, mamba, rwkv7                                 of the same names
//   transformer (fla), llama                          attention
//
// and hybrids of the first and of gla and rwkv7 with attention (`attn`).
namespace lrnn::model {

// What a published folder says that our config has no words for, kept to write it back.
struct Origin {
  nlohmann::ordered_json config;              // config.json as it was
  std::string dtype = "F32";                  // of most tensors, as safetensors names it
  std::map<std::string, std::string> others;  // tensors of another dtype, by their published names
  bool stored_head = false;  // lm_head.weight was in the file although it is the embedding
};

struct Imported {
  ModelPtr model;
  Origin origin;
};

// Whether it is such a folder, and not one of ours.
bool is_published(const std::string& folder);
// In float32. Throws an Error that says what cannot be read, or all that does not fit.
Imported import_model(const std::string& folder);

// The config alone: what our model must be.
struct Published {
  std::string type;
  ModelConfig config;
  int64_t vocabulary = 0;
};
// `source` is named in errors.
Published published_model(const nlohmann::ordered_json& config, const std::string& source);

}  // namespace lrnn::model
