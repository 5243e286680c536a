#include "model/fla_config.h"

#include <cmath>

#include "base/atomic_file.h"
#include "mixers/delta_product.h"
#include "model/block.h"
#include "model/checkpoint.h"

namespace lrnn::model {
namespace {

using Json = nlohmann::ordered_json;
using Mixer = mixers::DeltaProductConfig;

// What fla lacks, and what it has but nobody has translated.
void need(bool ok, const std::string& what) {
  if (!ok) throw Error(cat("fla has no model like this one: ", what));
}
void need_translated(bool ok, const std::string& what) {
  if (!ok)
    throw Error(cat("lrnn does not export ", what, " yet"),
                "so far it exports models of delta_product and delta_net in float32");
}

void need_mixer(const std::string& name) {
  for (const char* in_fla : {"attention", "gla", "mamba", "rwkv7"})
    need_translated(name != in_fla, cat("the mixer ", name));
  need(name == "delta_product" || name == "delta_net", cat("the mixer ", name));
}

// fla computes floor(size * ratio); the nearest double of whole / size may come out one short.
double ratio(int64_t whole, int64_t size) {
  double r = double(whole) / double(size);
  while (static_cast<int64_t>(double(size) * r) < whole) r = std::nextafter(r, HUGE_VAL);
  return r;
}

bool is_delta_net(const Mixer& m) { return m.householders == 1 && !m.forget_gate; }

void delta_net(Json& out, const Mixer& m, int64_t width) {
  out["model_type"] = "delta_net";
  out["architectures"] = {"DeltaNetForCausalLM"};
  out["expand_k"] = ratio(m.heads * m.key_dim, width);
  out["expand_v"] = ratio(m.heads * m.value(), width);
  out["use_gate"] = m.output_gate;
  out["use_beta"] = m.beta;
  out["use_output_norm"] = true;
  out["qk_norm"] = m.qk_norm;
  out["qk_activation"] = m.qk_activation == "none" ? "identity" : m.qk_activation;
}

void gated(Json& out, const Mixer& m) {
  const std::string with = " with householders > 1 or a forget gate";
  need(m.qk_activation == "silu", cat("qk_activation ", m.qk_activation, with));
  need(m.qk_norm == "l2", cat("qk_norm ", m.qk_norm, with));
  need(m.beta, "beta false" + with);
  out["head_dim"] = m.key_dim;
  out["expand_v"] = ratio(m.value(), m.key_dim);
  if (m.householders == 1 && m.forget_gate) {
    out["model_type"] = "gated_deltanet";
    out["architectures"] = {"GatedDeltaNetForCausalLM"};
    out["use_gate"] = m.output_gate;
    return;
  }
  out["model_type"] = "gated_deltaproduct";
  out["architectures"] = {"GatedDeltaProductForCausalLM"};
  out["use_output_gate"] = m.output_gate;
  out["use_forget_gate"] = m.forget_gate;
  out["num_householder"] = m.householders;
}

}  // namespace

Json fla_config(const ModelConfig& c, int64_t vocabulary) {
  const std::string name = mixers::find(c.mixer).name;
  need_mixer(name);
  const auto m = load<Mixer>(c.mixer, {"name"});
  need(c.final_norm, "final_norm false");
  need_translated(c.hybrid.every == 0, "hybrid blocks");
  need_translated(c.dtype == "float32", cat("dtype ", c.dtype));
  need(c.norm == "rms", cat("norm ", c.norm));
  need(c.block == "residual", cat("block ", c.block));
  need(c.mlp.name == "swiglu", cat("mlp ", c.mlp.name));
  need(m.v_activation == "silu", cat("v_activation ", m.v_activation));
  need(m.qk_norm != "none", "qk_norm none");
  need(!m.initial_state, "initial_state true");
  need(m.norm_eps == c.norm_eps, "a norm_eps of the mixer other than the model's");
  Json out;
  if (is_delta_net(m))
    delta_net(out, m, c.width);
  else
    gated(out, m);
  out["attn_mode"] = "chunk";
  out["hidden_size"] = c.width;
  out["num_hidden_layers"] = c.layers;
  out["num_heads"] = m.heads;
  out["use_short_conv"] = m.conv > 0;
  out["conv_size"] = m.conv > 0 ? m.conv : 4;
  out["allow_neg_eigval"] = m.negative();
  out["hidden_ratio"] = 4;
  out["intermediate_size"] = hidden_units(c.mlp, c.width);
  out["hidden_act"] = "swish";
  out["norm_eps"] = c.norm_eps;
  out["initializer_range"] = c.init.std;
  out["tie_word_embeddings"] = c.tied;
  out["vocab_size"] = vocabulary;
  out["torch_dtype"] = "float32";
  return out;
}

void write_for_fla(const std::string& folder, const Model& model) {
  const Json config = fla_config(model.config(), model.vocabulary());
  write_checkpoint(folder + "/model.safetensors", {tensors_of(model), {}});
  write_atomically(folder + "/config.json", config.dump(2) + "\n");
}

}  // namespace lrnn::model
