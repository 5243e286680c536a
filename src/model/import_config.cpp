#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "model/import.h"
#include "model/import_json.h"

// config.json of a published model as our config. Defaults are those of fla 0.6 and of
// transformers; keys that change no result (attn_mode, fuse_…, use_cache) are passed over.
namespace lrnn::model {
namespace {

using Json = nlohmann::ordered_json;
constexpr int64_t kMostLayers = 10000;

// A whole number of channels, which fla rounds to where a ratio says it.
int64_t channels(const PublishedJson& in, const std::string& key, double standard, int64_t of) {
  const double ratio = in.number(key, standard, 0), exact = ratio * double(of);
  const double whole = std::round(exact);
  if (whole < 1 || whole > double(PublishedJson::kLargest) ||
      std::abs(whole - exact) > 1e-5 * whole)
    in.wrong(key, cat("times ", of, " must be a whole number of channels"));
  return int64_t(whole);
}
int64_t per_head(const PublishedJson& in, int64_t all, int64_t heads) {
  if (all % heads != 0) in.fail(cat(all, " channels cannot be divided into ", heads, " heads"));
  return all / heads;
}

int64_t hidden_of(const PublishedJson& in, int64_t width) {
  const int64_t ratio = in.size("hidden_ratio", 4);
  const auto hidden = int64_t(double(width) * double(ratio) * 2 / 3);
  return in.size("intermediate_size", (hidden + 255) / 256 * 256);
}

// What all of fla's language models share; `width` and `layers` are the type's own defaults.
Json skeleton(const PublishedJson& in, int64_t width, int64_t layers, double eps) {
  in.only("attnres_block_size", {});
  in.only("hidden_act", {"swish", "silu"});
  width = in.size("hidden_size", width);
  return {{"width", width},
          {"layers", in.whole("num_hidden_layers", layers, 1, kMostLayers)},
          {"norm_eps", in.number("norm_eps", eps, 0)},
          {"tied", in.truth("tie_word_embeddings", false)},
          {"mlp", {{"name", "swiglu"}, {"hidden", hidden_of(in, width)}}},
          {"init", {{"scheme", "fla"}, {"std", in.number("initializer_range", 0.02, 0)}}}};
}

// The keys that all three of the family have.
Json delta_mixer(const PublishedJson& in, const Json& model, int64_t heads) {
  return {{"name", "delta_product"},
          {"heads", in.size("num_heads", heads)},
          {"conv", in.truth("use_short_conv", true) ? in.size("conv_size", 4) : 0},
          {"range", {in.truth("allow_neg_eigval", false) ? -1 : 0, 1}},
          {"norm_eps", model["norm_eps"]}};
}

Json delta_net(const PublishedJson& in) {
  Json out = skeleton(in, 2048, 24, 1e-6);
  Json mixer = delta_mixer(in, out, 16);
  const int64_t width = out["width"], heads = mixer["heads"];
  mixer["key_dim"] = per_head(in, channels(in, "expand_k", 1, width), heads);
  mixer["value_dim"] = per_head(in, channels(in, "expand_v", 1, width), heads);
  mixer["output_gate"] = in.truth("use_gate", false);
  mixer["beta"] = in.truth("use_beta", true);
  in.only("qk_activation", {"silu", "relu", "elu", "identity"});
  in.only("qk_norm", {"l2", "sum"});
  const std::string activation = in.word("qk_activation", "silu");
  mixer["qk_activation"] = activation == "identity" ? "none" : activation;
  mixer["qk_norm"] = in.word("qk_norm", "l2");
  // fla's sum is that of the absolute values, ours of the values: the same where none is negative.
  if (mixer["qk_norm"] == "sum" && activation != "relu" && activation != "elu")
    in.fail(cat("lrnn has no qk_norm sum with qk_activation ", activation));
  out["mixer"] = mixer;
  return out;
}

Json gated_deltanet(const PublishedJson& in) {
  Json out = skeleton(in, 2048, 21, 1e-6);
  Json mixer = delta_mixer(in, out, 6);
  in.only("output_gate_activation", {"swish", "silu"});
  const int64_t heads = mixer["heads"], values = in.size("num_v_heads", heads);
  if (values % heads != 0) in.wrong("num_v_heads", cat("must be a multiple of num_heads ", heads));
  if (values != heads) mixer["value_heads"] = values;
  mixer["key_dim"] = in.size("head_dim", 256);
  mixer["value_dim"] = channels(in, "expand_v", 2, mixer["key_dim"]);
  mixer["forget_gate"] = true;
  mixer["output_gate"] = in.truth("use_gate", true);
  out["mixer"] = mixer;
  return out;
}

Json gated_deltaproduct(const PublishedJson& in) {
  Json out = skeleton(in, 2048, 21, 1e-6);
  Json mixer = delta_mixer(in, out, 6);
  mixer["key_dim"] = in.size("head_dim", 256);
  mixer["value_dim"] = channels(in, "expand_v", 2, mixer["key_dim"]);
  mixer["householders"] = in.size("num_householder", 1);
  mixer["forget_gate"] = in.truth("use_forget_gate", false);
  // Files of 2025 call it use_gate.
  mixer["output_gate"] = in.truth("use_output_gate", in.truth("use_gate", true));
  out["mixer"] = mixer;
  return out;
}

Json gla(const PublishedJson& in) {
  Json out = skeleton(in, 2048, 24, 1e-6);
  const int64_t width = out["width"], heads = in.size("num_heads", 4);
  in.only("num_kv_heads", {heads});
  in.only("feature_map", {});
  in.only("use_gk", {true});
  in.only("use_gv", {false});
  in.only("elementwise_affine", {true});
  out["mixer"] = {{"name", "gla"},
                  {"heads", heads},
                  {"key_dim", per_head(in, channels(in, "expand_k", 0.5, width), heads)},
                  {"value_dim", per_head(in, channels(in, "expand_v", 1, width), heads)},
                  {"conv", in.truth("use_short_conv", false) ? in.size("conv_size", 4) : 0},
                  {"output_gate", in.truth("use_output_gate", true)},
                  {"norm_eps", out["norm_eps"]}};
  if (in.has("clamp_min")) {
    const double clamp = in.number("clamp_min", 0, -1e9);
    if (clamp >= 0) in.wrong("clamp_min", "must be below 0");
    out["mixer"]["clamp"] = clamp;
  }
  return out;
}

Json attention(const PublishedJson& in, const std::string& heads_key, const std::string& kv_key,
               int64_t standard, int64_t width) {
  const int64_t heads = in.size(heads_key, standard), kv = in.size(kv_key, heads);
  if (heads % kv != 0) in.wrong(kv_key, cat("must divide ", heads_key, " ", heads));
  Json out{{"name", "attention"},
           {"heads", heads},
           {"head_dim", in.has("head_dim") ? in.size("head_dim", 1) : per_head(in, width, heads)}};
  if (kv != heads) out["kv_heads"] = kv;
  return out;
}

// fla's, of a Transformer and inside hybrids.
Json fla_attention(const PublishedJson& in, int64_t width) {
  in.only("qkv_bias", {false});
  in.only("qk_norm", {false});
  in.only("window_size", {});
  Json out = attention(in, "num_heads", "num_kv_heads", 32, width);
  out["head_dim"] = per_head(in, width, out["heads"]);
  out["rotary_base"] = in.number("rope_theta", 10000, 1);
  return out;
}

Json transformer(const PublishedJson& in) {
  Json out = skeleton(in, 2048, 24, 1e-6);
  in.only("elementwise_affine", {true});
  out["mixer"] = fla_attention(in, out["width"]);
  return out;
}

Json llama(const PublishedJson& in) {
  Json out = skeleton(in, 4096, 32, 1e-6);
  in.only("attention_bias", {false});
  in.only("mlp_bias", {false});
  out["norm_eps"] = in.number("rms_norm_eps", 1e-6, 0);
  out["mlp"]["hidden"] = in.size("intermediate_size", 11008);
  Json mixer = attention(in, "num_attention_heads", "num_key_value_heads", 32, out["width"]);
  double base = in.number("rope_theta", 10000, 1);
  // Of transformers 5, and before; both also stretch positions, which ours do not.
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (!in.has(key)) continue;
    if (!in.at(key).is_object()) in.wrong(key, "must be an object");
    const PublishedJson rope(in.at(key), cat(in.source(), ": ", key));
    rope.only("rope_type", {"default"});
    rope.only("type", {"default"});
    base = rope.number("rope_theta", base, 1);
  }
  mixer["rotary_base"] = base;
  out["mixer"] = mixer;
  return out;
}

// fla's and that of transformers have the same tensors, and several keys under other names.
Json mamba(const PublishedJson& in) {
  const bool fla = in.has("norm_eps") || in.has("dt_rank");
  Json out = skeleton(in, fla ? 2048 : 768, fla ? 48 : 32, 1e-5);
  const int64_t width = out["width"];
  in.only("use_bias", {false});
  in.only("use_conv_bias", {true});
  if (!fla) out["norm_eps"] = in.number("layer_norm_epsilon", 1e-5, 0);
  out["tied"] = in.truth("tie_word_embeddings", !fla);
  out["mlp"] = {{"name", "none"}};
  const int64_t expand = in.size("expand", 2);
  in.only("intermediate_size", {expand * width});
  Json mixer{{"name", "mamba"},
             {"expand", expand},
             {"state_dim", in.size("state_size", 16)},
             {"conv", in.size("conv_kernel", 4)},
             {"range", {0, 1}}};
  const char* rank = in.has("dt_rank") ? "dt_rank" : "time_step_rank";
  if (in.has(rank) && in.at(rank) != "auto") mixer["dt_rank"] = in.size(rank, 1);
  out["mixer"] = mixer;
  return out;
}

Json rwkv7(const PublishedJson& in) {
  in.only("norm_bias", {true});
  in.only("attn", {});  // fla 0.6 builds such hybrids, and cannot run them
  const int64_t width = in.size("hidden_size", 2048);
  const int64_t layers = in.whole("num_hidden_layers", 24, 1, kMostLayers);
  const int64_t ratio = in.size("hidden_ratio", 4);
  const int64_t dim = in.has("head_dim") || !in.has("num_heads")
                          ? in.size("head_dim", 64)
                          : per_head(in, width, in.size("num_heads", 1));
  const double eps = in.number("norm_eps", 1e-5, 0);
  in.only("hidden_act", {"sqrelu"});
  in.only("value_dim", {width, Json(std::vector<int64_t>(size_t(layers), width))});
  return {{"width", width},
          {"layers", layers},
          {"norm", "affine"},
          {"norm_eps", eps},
          {"input_norm", in.truth("norm_first", true)},
          {"tied", in.truth("tie_word_embeddings", false)},
          {"mlp",
           {{"name", "channel_mix"},
            {"hidden", in.size("intermediate_size", (width * ratio + 31) / 32 * 32)}}},
          {"init", {{"scheme", "fla"}, {"std", in.number("initializer_range", 0.02, 0)}}},
          {"mixer",
           {{"name", "rwkv7"},
            {"heads", per_head(in, width, dim)},
            {"head_dim", dim},
            {"decay_rank", in.size("decay_low_rank_dim", 64)},
            {"rate_rank", in.size("a_low_rank_dim", 64)},
            {"gate_rank", in.size("gate_low_rank_dim", 128)},
            {"value_rank", in.size("v_low_rank_dim", 16)},
            // fla's own norm of keys, or torch's.
            {"key_eps", in.truth("fuse_norm", true) ? 1e-6 : 1e-24},
            {"norm_eps", eps}}}};
}

// `attn`: some blocks are attention; one object, or several that differ in their blocks alone.
void add_hybrid(const PublishedJson& in, Json& model) {
  if (!in.has("attn")) return;
  const Json all = in.at("attn").is_array() ? in.at("attn") : Json::array({in.at("attn")});
  Json mixer;
  std::vector<int64_t> layers;
  for (const auto& one : all) {
    if (!one.is_object() || !one.contains("layers") || !one["layers"].is_array())
      in.wrong("attn", "must be an object with a list of layers, or a list of such");
    const PublishedJson attn(one, cat(in.source(), ": attn"));
    if (!attn.has("num_heads")) attn.fail("num_heads is needed");
    const Json here = fla_attention(attn, model["width"]);
    if (!mixer.is_null() && here != mixer) in.fail("lrnn has one kind of attention in a model");
    mixer = here;
    for (const auto& layer : one["layers"]) {
      if (!layer.is_number_unsigned() || layer.get<uint64_t>() >= model["layers"].get<uint64_t>() ||
          std::find(layers.begin(), layers.end(), layer.get<int64_t>()) != layers.end())
        attn.wrong("layers", "must be different blocks of the model");
      layers.push_back(layer.get<int64_t>());
    }
  }
  if (layers.empty()) return;
  std::sort(layers.begin(), layers.end());
  model["hybrid"] = {{"layers", layers}, {"mixer", mixer}};
}

struct Type {
  const char* name;
  Json (*read)(const PublishedJson&);
};
constexpr Type kTypes[] = {{"delta_net", delta_net},
                           {"gated_deltanet", gated_deltanet},
                           {"gated_deltaproduct", gated_deltaproduct},
                           {"gla", gla},
                           {"rwkv7", rwkv7},
                           {"mamba", mamba},
                           {"transformer", transformer},
                           {"llama", llama}};

// The first Mamba's config.json, which has no model_type, in the words of later ones.
Json first_mamba(const PublishedJson& in) {
  const Json ssm = in.has("ssm_cfg") ? in.at("ssm_cfg") : Json::object();
  if (!ssm.is_object() || !ssm.empty()) in.wrong("ssm_cfg", "must be an empty object");
  in.only("rms_norm", {true});
  const int64_t multiple = in.size("pad_vocab_size_multiple", 8);
  const int64_t vocabulary = in.size("vocab_size", 50277);
  return {{"model_type", "mamba"},
          {"hidden_size", in.size("d_model", 2560)},
          {"num_hidden_layers", in.size("n_layer", 64)},
          {"vocab_size", (vocabulary + multiple - 1) / multiple * multiple},
          {"layer_norm_epsilon", 1e-5},
          {"tie_word_embeddings", in.truth("tie_embeddings", true)}};
}

}  // namespace

Published published_model(const Json& config, const std::string& source) {
  if (!config.is_object()) throw Error(cat(source, " is not a JSON object"));
  const PublishedJson in(config, source);
  if (!in.has("model_type") && in.has("d_model") && in.has("n_layer"))
    return published_model(first_mamba(in), source);
  Published out;
  out.json = config;
  out.type = in.word("model_type", "");
  std::string known;
  const Type* type = nullptr;
  for (const auto& one : kTypes) {
    known += cat(known.empty() ? "" : ", ", one.name);
    if (out.type == one.name) type = &one;
  }
  if (!type)
    throw Error(
        cat(source, ": ", out.type.empty() ? "there is no model_type" : "lrnn has no model ",
            out.type.empty() ? "" : cat("of the type '", out.type, "'")),
        cat("it imports ", known));
  out.vocabulary = in.whole("vocab_size", 32000, 1, 100'000'000);
  Json model = type->read(in);
  if (model["mixer"]["name"] == "delta_product" || out.type == "gla") add_hybrid(in, model);
  out.config = load<ModelConfig>(Section::from_text(model.dump(), source));
  return out;
}

}  // namespace lrnn::model
