#include "mixers/layers.h"

#include "base/error.h"
#include "mixers/mixer.h"
#include "ops/linears/linears.h"
#include "ops/norm/norm.h"
#include "ops/short_conv/short_conv.h"

namespace lrnn::mixers {

// The whole, unless a member is elsewhere by now.
Tensor Pack::if_it_holds(const Tensor& whole, Tensor Weighted::*which) const {
  if (!whole.defined()) return {};
  int64_t at = whole.storage_offset();
  for (const auto& member : members_) {
    const Tensor& x = (*member).*which;
    if (!x.defined() || !x.storage().is_alias_of(whole.storage()) || x.storage_offset() != at ||
        x.scalar_type() != whole.scalar_type() || !x.is_contiguous())
      return {};
    at += x.numel();
  }
  return at == whole.storage_offset() + whole.numel() ? whole : Tensor();
}

ops::WeightStack Pack::read() const {
  ops::WeightStack out;
  for (const auto& member : members_) out.parts.push_back(member->read());
  out.whole = if_it_holds(whole_, &Weighted::weight);
  out.whole_copy = if_it_holds(copy_, &Weighted::copy);
  return out;
}

ops::Joint Pack::joint(const std::vector<ops::Weight>& among) const {
  const auto stack = read();
  ops::Joint out{{}, stack.whole, stack.whole_copy};
  for (const auto& part : stack.parts)
    for (size_t i = 0; i < among.size(); ++i)
      if (among[i].value.is_same(part.value)) out.which.push_back(i);
  check(out.which.size() == members_.size(), "a pack of ", members_.size(), " weights was read as ",
        out.which.size());
  return out;
}

Tensor BlockLinear::apply(const Tensor& x, const Tensor& weight) {
  return ops::block_linear(x, weight);
}

Tensor LayerNorm::forward(const Tensor& x) const {
  return torch::layer_norm(x, {x.size(-1)}, (1 + weight).to(x.scalar_type()), {}, eps_);
}

Tensor AffineNorm::forward(const Tensor& x) const {
  const auto type = x.scalar_type();
  return torch::layer_norm(x, {x.size(-1)}, weight.to(type), bias.to(type), eps_);
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
                                    .weight = read().in(x.scalar_type()),
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
                            .weight = read().in(window.scalar_type()),
                            .bias = bias.defined() ? bias.to(window.scalar_type()) : bias,
                            .state = state,
                            .silu = silu,
                            .cu_seqlens = {}},
                           context.lengths(x.length(), window.device()));
  state = out.state;
  return out.y;
}

}  // namespace lrnn::mixers
