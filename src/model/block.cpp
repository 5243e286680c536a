#include "model/block.h"

#include "ops/pointwise.h"

namespace lrnn::model {

SwiGlu::SwiGlu(int64_t width, int64_t hidden) {
  gate_ = register_module("gate_proj", std::make_shared<mixers::Linear>(width, hidden));
  up_ = register_module("up_proj", std::make_shared<mixers::Linear>(width, hidden));
  down_ = register_module("down_proj", std::make_shared<mixers::Linear>(hidden, width));
}

Tensor SwiGlu::forward(const Tensor& x) const {
  const auto both = ops::linears(x, {gate_->weight, up_->weight});
  return down_->forward(ops::swiglu(both[0], both[1]));
}

int64_t hidden_units(const MlpConfig& config, int64_t width) {
  if (config.hidden > 0) return config.hidden;
  return (2 * 4 * width / 3 + 255) / 256 * 256;
}

Block::Block(const ModelConfig& c) {
  attn_norm_ = register_module("attn_norm", std::make_shared<mixers::RmsNorm>(c.width, c.norm_eps));
  mixer_ = register_module("attn", mixers::make(c.width, c.mixer));
  if (c.mlp.name == "none") return;
  mlp_norm_ = register_module("mlp_norm", std::make_shared<mixers::RmsNorm>(c.width, c.norm_eps));
  mlp_ = register_module("mlp", std::make_shared<SwiGlu>(c.width, hidden_units(c.mlp, c.width)));
}

Tensor Block::forward(const mixers::Rows& in, mixers::State& state, const Context& context) const {
  const Tensor y = mixer_->forward({attn_norm_->forward(in.x), in.token}, state, context);
  Tensor x;
  if (context.last_only) {
    const Tensor last = context.last_rows(in.batch(), in.length(), 1);  // [S,1]
    x = in.rows(context.cu_seqlens.defined() ? last.transpose(0, 1) : last) + y;
  } else {
    x = in.rows() + y;
  }
  return mlp_ ? x + mlp_->forward(mlp_norm_->forward(x)) : x;
}

}  // namespace lrnn::model
