#include "mixers/layers.h"

#include "ops/pointwise.h"
#include "ops/short_conv.h"

namespace lrnn::mixers {

Tensor RmsNorm::forward(const Tensor& x) const { return ops::rms_norm(x, weight, eps_); }

Tensor ShortConv::forward(const Tensor& x, Tensor& state, bool silu,
                          const Tensor& cu_seqlens) const {
  // Under autocast x is bfloat16, and a convolution there has bfloat16 weights as well.
  const auto out = ops::short_conv({.x = x,
                                    .weight = weight.to(x.scalar_type()),
                                    .bias = {},
                                    .state = state,
                                    .silu = silu,
                                    .cu_seqlens = cu_seqlens});
  state = out.state;
  return out.y;
}

Tensor ShortConv::last(const Tensor& window, Tensor& state, bool silu) const {
  state = Tensor();
  return forward(window, state, silu).slice(1, -1);
}

}  // namespace lrnn::mixers
