#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "model/import.h"
#include "model/model.h"

// A model of ours as a folder that transformers loads, once fla is imported: config.json and
// model.safetensors. One of three model types says the same as our delta_product:
//
//   delta_net           one householder, no forget gate; any qk_activation, qk_norm l2 or sum, beta
//                       or not
//   gated_deltanet      one householder with a forget gate
//   gated_deltaproduct  everything else that has SiLU on q, k and v, qk_norm l2 and a learnt beta
//
// What fla cannot say: mlp none or geglu, another norm than rms or none before the head, plain
// blocks, v_activation none, qk_norm none, a learnt initial state, a norm_eps of the mixer other
// than the model's, the switches of delta_net together with more householders or a forget gate, and
// the mixers slstm, mlstm and the toys. What it says in other words, which nobody has translated:
// its Mamba, GLA, RWKV-7 and Transformer, hybrids of attention, and weights in float64.
namespace lrnn::model {

// Throws an Error that says which of our settings fla lacks, or which are not exported yet. What
// an imported model came with, `origin`, stays: its type, and every key that we do not set.
nlohmann::ordered_json export_config(const ModelConfig& config, int64_t vocabulary,
                                     const Origin* origin = nullptr);

// Writes model.safetensors and config.json into an existing folder. `dtype` is float32, bfloat16,
// or "": each tensor as `origin` had it, or float32.
void export_model(const std::string& folder, const Model& model, const Origin* origin = nullptr,
                  const std::string& dtype = {});

}  // namespace lrnn::model
