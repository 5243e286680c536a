#include "model/block.h"

#include "mixers/layers.h"
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

ChannelMix::ChannelMix(int64_t width, const MlpConfig& config) {
  const int64_t hidden = hidden_units(config, width);
  x_k_ = register_parameter("x_k", torch::empty(width));
  key_ = register_module("key", std::make_shared<mixers::Linear>(width, hidden));
  value_ = register_module("value", std::make_shared<mixers::Linear>(hidden, width));
}

Tensor ChannelMix::forward(const Tensor& x, Tensor& state, const Context& context) const {
  const Tensor d = mixers::shifted(x, state, context) - x;
  return value_->forward(torch::relu(key_->forward(x + d * x_k_.to(x.scalar_type()))).square());
}

int64_t hidden_units(const MlpConfig& config, int64_t width) {
  if (config.hidden > 0) return config.hidden;
  if (config.name == "channel_mix") return (4 * width + 31) / 32 * 32;
  if (config.name == "geglu") return (13 * width + 639) / 640 * 64;
  return (2 * 4 * width / 3 + 255) / 256 * 256;
}

std::shared_ptr<mixers::Norm> make_norm(const ModelConfig& c) {
  if (c.norm == "none") return nullptr;
  if (c.norm == "affine") return std::make_shared<mixers::AffineNorm>(c.width, c.norm_eps);
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
  mixer_->place(index);
  if (plain_) out_norm_ = norm("out_norm");
  const MlpConfig mlp = c.mlp_of(index);
  if (mlp.name == "none") return;
  mlp_norm_ = norm("mlp_norm");
  if (mlp.name == "channel_mix")
    channel_mix_ = register_module("mlp", std::make_shared<ChannelMix>(c.width, mlp));
  else
    mlp_ = register_module("mlp", std::make_shared<GatedMlp>(c.width, mlp));
}

int64_t Block::mlp_state_size() const {
  return channel_mix_ ? channel_mix_->named_parameters()["x_k"].size(0) : 0;
}

// The channel mix reads the row before each, so every row goes through the mixer. Its state stands
// behind the mixer's.
Stream Block::with_channel_mix(const mixers::Rows& stream, const mixers::Rows& normed,
                               mixers::State& state, const Context& context) const {
  Context everywhere = context;
  everywhere.read_at.reset();
  Tensor before;
  if (!state.empty()) before = state.back(), state.pop_back();
  const Tensor y = mixer_->forward(normed, state, everywhere);
  Tensor sum, h;
  if (mlp_norm_)
    std::tie(sum, h) = mlp_norm_->after(stream.rows(), y, false);
  else
    sum = h = stream.rows() + y;
  const Tensor out = channel_mix_->forward(h, before, everywhere);
  state.push_back(before);
  const auto at = [&](const Tensor& rows) { return mixers::Rows{rows, {}}.at(context.read_at); };
  return {{at(sum), {}}, at(out)};
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
  if (channel_mix_) return with_channel_mix(stream, {h, in.x.token}, state, context);
  const Tensor y = mixer_->forward({h, in.x.token}, state, context);
  if (plain_) return {{out_norm_ ? out_norm_->forward(y) : y, {}}, {}};
  const Tensor x = stream.at(context.read_at);
  if (!mlp_) return {{x, {}}, y};
  const auto [sum, normed] = after(mlp_norm_, x, y, true);
  return {{sum, {}}, mlp_->forward(normed)};
}

}  // namespace lrnn::model
