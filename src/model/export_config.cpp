#include <cmath>

#include "mixers/delta_product.h"
#include "model/block.h"
#include "model/export.h"

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

std::string type_for(const Mixer& m) {
  if (m.householders > 1) return "gated_deltaproduct";
  return m.forget_gate ? "gated_deltanet" : "delta_net";
}

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

void gated(Json& out, const Mixer& m, const std::string& type) {
  const std::string with = " with householders > 1 or a forget gate";
  need(m.qk_activation == "silu", cat("qk_activation ", m.qk_activation, with));
  need(m.qk_norm == "l2", cat("qk_norm ", m.qk_norm, with));
  need(m.beta, "beta false" + with);
  out["head_dim"] = m.key_dim;
  out["expand_v"] = ratio(m.value(), m.key_dim);
  if (type == "gated_deltanet") {
    out["model_type"] = type;
    out["architectures"] = {"GatedDeltaNetForCausalLM"};
    out["use_gate"] = m.output_gate;
    return;
  }
  out["model_type"] = type;
  out["architectures"] = {"GatedDeltaProductForCausalLM"};
  out["use_output_gate"] = m.output_gate;
  out["use_forget_gate"] = m.forget_gate;
  out["num_householder"] = m.householders;
}

}  // namespace

Json export_config(const ModelConfig& c, int64_t vocabulary, const Origin* origin) {
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
  // fla divides by the sum of the absolute values.
  need(m.qk_norm != "sum" || m.qk_activation == "relu" || m.qk_activation == "elu",
       cat("qk_norm sum with qk_activation ", m.qk_activation));
  need(!m.initial_state, "initial_state true");
  need(m.norm_eps == c.norm_eps, "a norm_eps of the mixer other than the model's");
  Json out = origin ? origin->config : Json();
  const std::string type = origin ? out.at("model_type").get<std::string>() : type_for(m);
  if (type == "delta_net")
    delta_net(out, m, c.width);
  else
    gated(out, m, type);
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
  return out;
}

}  // namespace lrnn::model
