#include "mixers/layers.h"

#include "base/error.h"
#include "mixers/mixer.h"
#include "ops/add_norm/add_norm.h"
#include "ops/block_linear/block_linear.h"
#include "ops/cast_weights/cast_weights.h"
#include "ops/node.h"
#include "ops/norm/norm.h"
#include "ops/short_conv/short_conv.h"

namespace lrnn::mixers {
namespace {

struct ScaledSigmoidBackward final : torch::autograd::Node {
  Tensor y;  // of the sigmoid alone
  double scale = 1;
  std::string name() const override { return "ScaledSigmoidBackward"; }
  void release_variables() override { y.reset(); }
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grad) override {
    ops::check_last_derivative("scaled_sigmoid", grad);
    if (!grad[0].defined()) return {Tensor()};
    return {ops::below_autograd([&] { return at::sigmoid_backward(grad[0], y).mul_(scale); })};
  }
};

}  // namespace

Tensor scaled_sigmoid(const Tensor& x, double scale) {
  if (scale == 1) return torch::sigmoid(x);
  if (ops::has_tangent(x)) return torch::sigmoid(x) * scale;
  const auto node = ops::make_node<ScaledSigmoidBackward>(x);
  Tensor out = ops::below_autograd([&] {
    const Tensor y = at::sigmoid(x);
    if (node) node->y = y, node->scale = scale;
    return y * scale;
  });
  if (node) torch::autograd::set_history(out, node);
  return out;
}

Tensor BlockLinear::apply(const Tensor& x, const Tensor& weight) {
  return ops::block_linear(x, weight);
}

Tensor LayerNorm::forward(const Tensor& x) const {
  return torch::layer_norm(x, {x.size(-1)}, (1 + weight).to(x.scalar_type()), {}, eps_);
}

Tensor HeadNorm::forward(const Tensor& x) const {
  const Tensor y = torch::layer_norm(x, {x.size(-1)}, {}, {}, eps_);
  return y.flatten(-2) * (1 + weight).to(x.scalar_type());
}

Tensor RmsNorm::forward(const Tensor& x) const { return ops::rms_norm(x, weight, eps_); }

std::pair<Tensor, Tensor> RmsNorm::after(const Tensor& x, const Tensor& y,
                                         bool for_products) const {
  return ops::add_norm(x, y, weight, eps_, for_products);
}

Tensor ShortConv::forward(const Tensor& x, Tensor& state, bool silu,
                          const Tensor& cu_seqlens) const {
  // Under autocast x is bfloat16, and a convolution there has bfloat16 weights as well.
  const auto out = ops::short_conv({.x = x,
                                    .weight = ops::weight_in(weight, x.scalar_type()),
                                    .bias = bias.defined() ? bias.to(x.scalar_type()) : bias,
                                    .state = state,
                                    .silu = silu,
                                    .cu_seqlens = cu_seqlens});
  state = out.state;
  return out.y;
}

Tensor ShortConv::ends(const Rows& x, const Linear& linear, Tensor& state, bool silu,
                       const Context& context) const {
  const int64_t W = weight.size(2);
  const Tensor pick = context.last_rows(x.batch(), x.length(), W, x.x.device());
  const Tensor window = x.through(linear, pick);  // [S,W,C]
  const auto out =
      ops::short_conv_ends({.x = window,
                            .weight = ops::weight_in(weight, window.scalar_type()),
                            .bias = bias.defined() ? bias.to(window.scalar_type()) : bias,
                            .state = state,
                            .silu = silu,
                            .cu_seqlens = {}},
                           context.lengths(x.length(), window.device()));
  state = out.state;
  return out.y;
}

}  // namespace lrnn::mixers
