#include "model/block.h"

#include "ops/pointwise.h"

namespace lrnn::model {

GatedMlp::GatedMlp(int64_t width, const MlpConfig& config) : gelu_(config.name == "geglu") {
  const int64_t hidden = hidden_units(config, width);
  gate_ = register_module("gate_proj", std::make_shared<mixers::Linear>(width, hidden));
  up_ = register_module("up_proj", std::make_shared<mixers::Linear>(width, hidden));
  down_ = register_module("down_proj", std::make_shared<mixers::Linear>(hidden, width));
}

Tensor GatedMlp::forward(const Tensor& x) const {
  const auto both = ops::linears(x, {gate_->weight, up_->weight});
  return down_->forward(gelu_ ? torch::gelu(both[0]) * both[1] : ops::swiglu(both[0], both[1]));
}

int64_t hidden_units(const MlpConfig& config, int64_t width) {
  if (config.hidden > 0) return config.hidden;
  if (config.name == "geglu") return (13 * width + 639) / 640 * 64;
  return (2 * 4 * width / 3 + 255) / 256 * 256;
}

std::shared_ptr<mixers::Norm> make_norm(const ModelConfig& c) {
  if (c.norm == "none") return nullptr;
  if (c.norm == "layer") return std::make_shared<mixers::LayerNorm>(c.width, c.norm_eps);
  return std::make_shared<mixers::RmsNorm>(c.width, c.norm_eps);
}

Block::Block(const ModelConfig& c, int64_t index) : plain_(c.block == "plain") {
  const auto norm = [&](const char* name) {
    auto out = make_norm(c);
    return out ? register_module(name, out) : out;
  };
  attn_norm_ = norm("attn_norm");
  mixer_ = register_module("attn", mixers::make(c.width, c.mixer_of(index)));
  if (plain_) out_norm_ = norm("out_norm");
  const MlpConfig mlp = c.mlp_of(index);
  if (mlp.name == "none") return;
  mlp_norm_ = norm("mlp_norm");
  mlp_ = register_module("mlp", std::make_shared<GatedMlp>(c.width, mlp));
}

Tensor Block::forward(const mixers::Rows& in, mixers::State& state, const Context& context) const {
  const auto normed = [](const std::shared_ptr<mixers::Norm>& norm, const Tensor& x) {
    return norm ? norm->forward(x) : x;
  };
  const Tensor y = mixer_->forward({normed(attn_norm_, in.x), in.token}, state, context);
  if (plain_) return normed(out_norm_, y);
  Tensor x;
  if (context.last_only) {
    const Tensor last = context.last_rows(in.batch(), in.length(), 1);  // [S,1]
    x = in.rows(context.cu_seqlens.defined() ? last.transpose(0, 1) : last) + y;
  } else {
    x = in.rows() + y;
  }
  return mlp_ ? x + mlp_->forward(normed(mlp_norm_, x)) : x;
}

}  // namespace lrnn::model
