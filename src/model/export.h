#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "model/import.h"
#include "model/model.h"

// A model of ours as a folder that transformers loads, once fla is imported: config.json and
// model.safetensors. The types:
//
//   delta_net           delta_product with one householder and no forget gate; any qk_activation,
//                       qk_norm l2, or sum of what is not negative, beta or not
//   gated_deltanet      one householder with a forget gate
//   gated_deltaproduct  everything else that has SiLU on q, k and v, qk_norm l2 and a learnt beta
//   gla                 range [0, 1], gate_rank and gate_normaliser 16
//   rwkv7               norm affine, mlp channel_mix, value_rank, range [0, 1]
//   mamba               mlp none, range [0, 1]
//   llama               attention with rotary positions; `transformer` where it came as such
//
// and hybrids of attention with the first four. What they cannot say: other norms and
// mlps than these, none before the head, plain blocks, v_activation none, qk_norm none, a learnt
// initial state, a norm_eps of the mixer other than the model's, the switches of delta_net together
// with more householders or a forget gate, and the mixers slstm, mlstm and the toys. Weights in
// float64 are not exported.
namespace lrnn::model {

// Throws an Error that says which of our settings fla and transformers lack. What
// an imported model came with, `origin`, stays: its type, and every key that we do not set.
nlohmann::ordered_json export_config(const ModelConfig& config, int64_t vocabulary,
                                     const Origin* origin = nullptr);

// Writes model.safetensors and config.json into an existing folder. `dtype` is float32, bfloat16,
// or "": each tensor as `origin` had it, or float32.
void export_model(const std::string& folder, const Model& model, const Origin* origin = nullptr,
                  const std::string& dtype = {});

}  // namespace lrnn::model
