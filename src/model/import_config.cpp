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

struct Type {
  const char* name;
  Json (*read)(const PublishedJson&);
};
constexpr Type kTypes[] = {{"delta_net", delta_net},
                           {"gated_deltanet", gated_deltanet},
                           {"gated_deltaproduct", gated_deltaproduct}};

}  // namespace

Published published_model(const Json& config, const std::string& source) {
  if (!config.is_object()) throw Error(cat(source, " is not a JSON object"));
  const PublishedJson in(config, source);
  Published out;
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
  out.config = load<ModelConfig>(Section::from_text(type->read(in).dump(), source));
  return out;
}

}  // namespace lrnn::model
