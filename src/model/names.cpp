#include "model/names.h"

namespace lrnn::model {

PublishedNames::PublishedNames(const std::string& type, bool fused) {
  if (type == "llama")
    parts_ = {{"model.embeddings.", "model.embed_tokens."},
              {".attn_norm.", ".input_layernorm."},
              {".attn.", ".self_attn."},
              {".mlp_norm.", ".post_attention_layernorm."}};
  if (type == "mamba")
    parts_ = {{"model.norm.", "backbone.norm_f."},
              {"model.", "backbone."},
              {".attn_norm.", ".norm."},
              {".attn.", ".mixer."}};
  if (type == "rwkv7")
    parts_ = {{"model.input_norm.", "model.layers.0.pre_norm."},
              {".mlp_norm.", ".ffn_norm."},
              {".mlp.", ".ffn."}};
  if (type == "gla" && !fused) parts_ = {{".g_norm_swish_gate.", ".g_norm."}};
}

std::string PublishedNames::operator()(std::string name) const {
  for (const auto& [ours, theirs] : parts_)
    if (const size_t at = name.find(ours); at != std::string::npos)
      name.replace(at, ours.size(), theirs);
  return name;
}

PublishedNames names_of(const std::string& type, const nlohmann::ordered_json& config) {
  return PublishedNames(type, !config.contains("fuse_norm") || config["fuse_norm"] != false);
}

}  // namespace lrnn::model
