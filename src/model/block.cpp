#include "model/block.h"

#include "ops/gated_mlp/gated_mlp.h"

namespace lrnn::model {

GatedMlp::GatedMlp(int64_t width, const MlpConfig& config) : gelu_(config.name == "geglu") {
  const int64_t hidden = hidden_units(config, width);
  gate_ = register_module("gate_proj", std::make_shared<mixers::Linear>(width, hidden));
  up_ = register_module("up_proj", std::make_shared<mixers::Linear>(width, hidden));
  down_ = register_module("down_proj", std::make_shared<mixers::Linear>(hidden, width));
  gate_up_ = mixers::Pack({gate_, up_});
}

Tensor GatedMlp::forward(const Tensor& x) const {
  if (!gelu_) return ops::gated_mlp(x, gate_up_.read(), down_->read());
  const auto both = ops::linears(x, gate_up_.read());
  return down_->forward(torch::gelu(both[0]) * both[1]);
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

Stream Block::forward(const Stream& in, mixers::State& state, const Context& context) const {
  // {x + y, the norm of that}
  const auto after = [](const std::shared_ptr<mixers::Norm>& norm, const Tensor& x, const Tensor& y,
                        bool for_products) -> std::pair<Tensor, Tensor> {
    if (norm) return norm->after(x, y, for_products);
    const Tensor s = y.defined() ? x + y : x;
    return {s, s};
  };
  const auto [s, h] = after(attn_norm_, in.x.x, in.y, mixer_->reads_products());
  const mixers::Rows stream{s, in.x.token};
  const Tensor y = mixer_->forward({h, in.x.token}, state, context);
  if (plain_) return {{out_norm_ ? out_norm_->forward(y) : y, {}}, {}};
  const Tensor x = stream.at(context.read_at);
  if (!mlp_) return {{x, {}}, y};
  const auto [sum, normed] = after(mlp_norm_, x, y, true);
  return {{sum, {}}, mlp_->forward(normed)};
}

}  // namespace lrnn::model
