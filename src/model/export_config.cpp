#include <cmath>

#include "mixers/delta_product.h"
#include "model/block.h"
#include "model/export.h"

namespace lrnn::model {
namespace {

using Json = nlohmann::ordered_json;
using Delta = mixers::DeltaProductConfig;

// What fla lacks.
void need(bool ok, const std::string& what) {
  if (!ok) throw Error(cat("fla has no model like this one: ", what));
}

// A mixer's settings, every key with its value, as text.
class Settings {
 public:
  explicit Settings(const Section& mixer) : node_(mixers::resolve(mixer)) {}
  std::string name() const { return node_["name"].as<std::string>(); }
  int64_t whole(const char* key) const { return int64_t(node_[key].as<double>()); }
  double number(const char* key) const { return node_[key].as<double>(); }
  bool truth(const char* key) const { return node_[key].as<bool>(); }
  std::string word(const char* key) const { return node_[key].as<std::string>(); }
  bool published_range() const {
    return node_["range"][0].as<int64_t>() == 0 && node_["range"][1].as<int64_t>() == 1;
  }

 private:
  YAML::Node node_;
};

// fla computes floor(size * ratio); the nearest double of whole / size may come out one short.
double ratio(int64_t whole, int64_t size) {
  double r = double(whole) / double(size);
  while (static_cast<int64_t>(double(size) * r) < whole) r = std::nextafter(r, HUGE_VAL);
  return r;
}

void need_skeleton(const ModelConfig& c) {
  need(c.norm == "rms", cat("norm ", c.norm));
  need(!c.input_norm, "input_norm true");
  need(c.mlp.name == "swiglu", cat("mlp ", c.mlp.name));
}

// ------------------------------------------------------------------------------ the delta family

std::string delta_type(const Delta& m) {
  if (m.householders > 1) return "gated_deltaproduct";
  return m.forget_gate ? "gated_deltanet" : "delta_net";
}

void delta_net(Json& out, const Delta& m, int64_t width) {
  out["architectures"] = {"DeltaNetForCausalLM"};
  out["expand_k"] = ratio(m.heads * m.key_dim, width);
  out["expand_v"] = ratio(m.heads * m.value(), width);
  out["use_gate"] = m.output_gate;
  out["use_beta"] = m.beta;
  out["use_output_norm"] = true;
  out["qk_norm"] = m.qk_norm;
  out["qk_activation"] = m.qk_activation == "none" ? "identity" : m.qk_activation;
}

void gated(Json& out, const Delta& m, const std::string& type) {
  const std::string with = " with householders > 1 or a forget gate";
  need(m.qk_activation == "silu", cat("qk_activation ", m.qk_activation, with));
  need(m.qk_norm == "l2", cat("qk_norm ", m.qk_norm, with));
  need(m.beta, "beta false" + with);
  out["head_dim"] = m.key_dim;
  out["expand_v"] = ratio(m.value(), m.key_dim);
  if (type == "gated_deltanet") {
    out["architectures"] = {"GatedDeltaNetForCausalLM"};
    out["use_gate"] = m.output_gate;
    if (m.states() != m.heads) out["num_v_heads"] = m.states();
    return;
  }
  out["architectures"] = {"GatedDeltaProductForCausalLM"};
  out["use_output_gate"] = m.output_gate;
  out["use_forget_gate"] = m.forget_gate;
  out["num_householder"] = m.householders;
}

void delta(Json& out, const ModelConfig& c, const Section& mixer, const std::string& type) {
  const auto m = load<Delta>(mixer, {"name"});
  need_skeleton(c);
  need(m.v_activation == "silu", cat("v_activation ", m.v_activation));
  need(m.qk_norm != "none", "qk_norm none");
  // fla divides by the sum of the absolute values.
  need(m.qk_norm != "sum" || m.qk_activation == "relu" || m.qk_activation == "elu",
       cat("qk_norm sum with qk_activation ", m.qk_activation));
  need(!m.initial_state, "initial_state true");
  need(m.step == "sigmoid", cat("step ", m.step));
  need(!m.gates_channels(), "gate_per channel");
  need(m.norm_eps == c.norm_eps, "a norm_eps of the mixer other than the model's");
  out["model_type"] = type.empty() ? delta_type(m) : type;
  need(m.states() == m.heads || out["model_type"] == "gated_deltanet",
       "value_heads without a forget gate or with more householders");
  if (out["model_type"] == "delta_net")
    delta_net(out, m, c.width);
  else
    gated(out, m, out["model_type"]);
  out["attn_mode"] = "chunk";
  out["num_heads"] = m.heads;
  out["use_short_conv"] = m.conv > 0;
  out["conv_size"] = m.conv > 0 ? m.conv : 4;
  out["allow_neg_eigval"] = m.negative();
}

// ------------------------------------------------------------------------------------ the others

void gla(Json& out, const ModelConfig& c, const Settings& m) {
  need_skeleton(c);
  need(m.published_range(), "gla with the range [-1, 1]");
  need(m.number("gate_normaliser") == 16, "gate_normaliser other than 16");
  need(m.whole("gate_rank") == 16, "gate_rank other than 16");
  need(m.number("norm_eps") == c.norm_eps, "a norm_eps of the mixer other than the model's");
  const int64_t heads = m.whole("heads"), conv = m.whole("conv");
  out["model_type"] = "gla";
  out["architectures"] = {"GLAForCausalLM"};
  out["attn_mode"] = "chunk";
  out["num_heads"] = heads;
  out["expand_k"] = ratio(heads * m.whole("key_dim"), c.width);
  out["expand_v"] = ratio(heads * m.whole("value_dim"), c.width);
  out["use_short_conv"] = conv > 0;
  out["conv_size"] = conv > 0 ? conv : 4;
  out["use_output_gate"] = m.truth("output_gate");
  out["clamp_min"] = m.number("clamp") < 0 ? Json(m.number("clamp")) : Json();
}

void rwkv7(Json& out, const ModelConfig& c, const Settings& m) {
  need(c.norm == "affine", cat("norm ", c.norm, " with rwkv7"));
  need(c.mlp.name == "channel_mix", cat("mlp ", c.mlp.name, " with rwkv7"));
  need(m.published_range(), "rwkv7 with the range [0, 2]");
  need(m.whole("heads") * m.whole("head_dim") == c.width, "rwkv7 whose heads are not the width");
  need(m.whole("value_rank") > 0 || c.layers == 1, "rwkv7 with value_rank 0");
  need(m.number("norm_eps") == c.norm_eps, "a norm_eps of the mixer other than the model's");
  // fla's own norm of keys, or torch's.
  const double eps = m.number("key_eps");
  need(eps == 1e-6 || eps <= 1e-12, "key_eps other than 1e-6 or at most 1e-12");
  out["model_type"] = "rwkv7";
  out["architectures"] = {"RWKV7ForCausalLM"};
  out["attn_mode"] = "chunk";
  out["head_dim"] = m.whole("head_dim");
  out["num_heads"] = m.whole("heads");
  out["decay_low_rank_dim"] = m.whole("decay_rank");
  out["a_low_rank_dim"] = m.whole("rate_rank");
  out["gate_low_rank_dim"] = m.whole("gate_rank");
  if (m.whole("value_rank") > 0) out["v_low_rank_dim"] = m.whole("value_rank");
  out["norm_first"] = c.input_norm;
  out["norm_bias"] = true;
  out["fuse_norm"] = eps == 1e-6;
}

// In the words of fla and of transformers: each passes over those of the other.
void mamba(Json& out, const ModelConfig& c, const Settings& m) {
  need(c.norm == "rms", cat("norm ", c.norm));
  need(!c.input_norm, "input_norm true");
  need(c.mlp.name == "none", cat("mlp ", c.mlp.name, " with mamba"));
  need(m.published_range(), "mamba with the range [-1, 1]");
  const int64_t rank = m.whole("dt_rank") > 0 ? m.whole("dt_rank") : (c.width + 15) / 16;
  out["model_type"] = "mamba";
  out["architectures"] = {"MambaForCausalLM"};
  out["expand"] = m.whole("expand");
  out["intermediate_size"] = m.whole("expand") * c.width;
  out["state_size"] = m.whole("state_dim");
  out["conv_kernel"] = m.whole("conv");
  out["dt_rank"] = out["time_step_rank"] = rank;
  out["use_bias"] = false;
  out["use_conv_bias"] = true;
  out["layer_norm_epsilon"] = c.norm_eps;
}

// The keys of fla's attention, of a Transformer and inside hybrids.
Json fla_attention(const Settings& m, int64_t width) {
  need(m.word("positions") == "rotary", cat("positions ", m.word("positions")));
  const int64_t heads = m.whole("heads"), dim = m.whole("head_dim"), kv = m.whole("kv_heads");
  need(dim == 0 || dim * heads == width, "attention whose heads are not the width");
  return {{"num_heads", heads},
          {"num_kv_heads", kv > 0 ? kv : heads},
          {"qkv_bias", false},
          {"window_size", nullptr},
          {"rope_theta", m.number("rotary_base")}};
}

void transformer(Json& out, const ModelConfig& c, const Settings& m) {
  need_skeleton(c);
  out["model_type"] = "transformer";
  out["architectures"] = {"TransformerForCausalLM"};
  out.update(fla_attention(m, c.width));
}

void llama(Json& out, const ModelConfig& c, const Settings& m) {
  need_skeleton(c);
  need(m.word("positions") == "rotary", cat("positions ", m.word("positions")));
  const int64_t heads = m.whole("heads"), dim = m.whole("head_dim"), kv = m.whole("kv_heads");
  out["model_type"] = "llama";
  out["architectures"] = {"LlamaForCausalLM"};
  out["num_attention_heads"] = heads;
  out["num_key_value_heads"] = kv > 0 ? kv : heads;
  out["head_dim"] = dim > 0 ? dim : c.width / heads;
  out["rms_norm_eps"] = c.norm_eps;
  out["attention_bias"] = out["mlp_bias"] = false;
  out["hidden_act"] = "silu";
  // Before transformers 5, and since.
  if (!out.contains("rope_parameters") || out.contains("rope_theta"))
    out["rope_theta"] = m.number("rotary_base");
  out["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", m.number("rotary_base")}};
}

// -------------------------------------------------------------------------------------- hybrids

struct Mixers {
  const Section* main;       // what gives the type
  const Section* attention;  // of the blocks `at`; null: none
  std::vector<int64_t> at;
};

// fla's hybrids have attention in some blocks, whichever of the two our config calls the other.
Mixers mixers_of(const ModelConfig& c) {
  Mixers out{&c.mixer, nullptr, {}};
  int64_t others = 0;
  for (int64_t i = 0; i < c.layers; ++i) others += c.hybrid.has(i);
  if (others == 0) return out;
  need(c.hybrid.mlp.node().size() == 0, "another mlp in some blocks");
  if (others == c.layers) return out.main = &c.hybrid.mixer, out;
  const auto is_attention = [](const Section& mixer) {
    return mixers::find(mixer).name == std::string("attention");
  };
  const bool first = is_attention(c.mixer);
  need(first != is_attention(c.hybrid.mixer), "two mixers of which not one is attention");
  out.main = first ? &c.hybrid.mixer : &c.mixer;
  out.attention = first ? &c.mixer : &c.hybrid.mixer;
  for (int64_t i = 0; i < c.layers; ++i)
    if (c.hybrid.has(i) != first) out.at.push_back(i);
  return out;
}

}  // namespace

Json export_config(const ModelConfig& c, int64_t vocabulary, const Origin* origin) {
  const auto blocks = mixers_of(c);
  const Settings m(*blocks.main);
  const std::string name = m.name();
  need(c.final_norm, "final_norm false");
  need(c.block == "residual", cat("block ", c.block));
  if (c.dtype != "float32") throw Error(cat("lrnn does not export dtype ", c.dtype, " yet"));
  Json out = origin ? origin->config : Json();
  const std::string type = origin ? out.at("model_type").get<std::string>() : "";
  if (name == "delta_product" || name == "delta_net")
    delta(out, c, *blocks.main, type);
  else if (name == "gla")
    gla(out, c, m);
  else if (name == "rwkv7")
    rwkv7(out, c, m);
  else if (name == "mamba")
    mamba(out, c, m);
  else if (name == "attention" && type == "transformer")
    transformer(out, c, m);
  else if (name == "attention")
    llama(out, c, m);
  else
    need(false, cat("the mixer ", name));
  if (blocks.attention) {
    need(name != "mamba" && name != "rwkv7", cat(name, " with blocks of attention"));
    if (!origin) {  // what came with it says the same
      out["attn"] = fla_attention(Settings(*blocks.attention), c.width);
      out["attn"]["layers"] = blocks.at;
    }
  }
  out["hidden_size"] = c.width;
  out["num_hidden_layers"] = c.layers;
  if (name != "mamba") out["intermediate_size"] = hidden_units(c.mlp, c.width);
  if (name == "rwkv7") out["hidden_act"] = "sqrelu";
  if (!out.contains("hidden_act")) out["hidden_act"] = name == "mamba" ? "silu" : "swish";
  if (out["model_type"] != "llama") out["norm_eps"] = c.norm_eps;
  out["initializer_range"] = c.init.std;
  out["tie_word_embeddings"] = c.tied;
  out["vocab_size"] = vocabulary;
  return out;
}

}  // namespace lrnn::model
