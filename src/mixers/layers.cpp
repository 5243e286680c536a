#include "mixers/layers.h"

#include "base/error.h"
#include "mixers/mixer.h"
#include "ops/linears/linears.h"
#include "ops/norm/norm.h"
#include "ops/short_conv/short_conv.h"
#include "ops/take/take.h"

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

Tensor HeadProjection::forward(const Rows& x, State& state, size_t which,
                               const Context& context) const {
  const Tensor y = x.through(*proj);
  const Tensor out = conv ? conv->forward(y, state[which], true, context.cu_seqlens) : y;
  return out.unflatten(-1, {heads, -1});
}

Tensor HeadProjection::ends(const Rows& x, State& state, size_t which,
                            const Context& context) const {
  const Tensor& at = context.read_at;
  if (!at.defined()) return forward(x, state, which, context);
  const Tensor out =
      conv ? conv->ends(x, *proj, state[which], true, context) : x.through(*proj, at.unsqueeze(0));
  return out.unflatten(-1, {heads, -1});
}

Tensor shifted(const Tensor& x, Tensor& state, const Context& context) {
  const int64_t B = x.size(0), T = x.size(1), rows = B * T;
  if (!context.cu_seqlens.defined() && T > 0) {
    const Tensor first = state.defined() ? state.to(x.scalar_type()).unsqueeze(1)
                                         : torch::zeros({B, 1, x.size(2)}, x.options());
    state = x.select(1, T - 1);
    return torch::cat({first, x.slice(1, 0, T - 1)}, 1);
  }
  const Tensor ends = context.last_rows(B, T, 1).squeeze(1);  // [S], -1 for an empty sequence
  Tensor begins = torch::arange(0, rows, std::max<int64_t>(T, 1));
  if (context.cu_seqlens.defined()) begins = context.cu_seqlens.slice(0, 0, -1);
  const Tensor flat = x.flatten(0, 1);
  const Tensor table = state.defined() ? torch::cat({flat, state.to(x.scalar_type())}) : flat;
  const Tensor from_state =
      state.defined() ? torch::arange(rows, rows + ends.size(0)) : torch::full_like(ends, -1);
  const Tensor filled = ends >= 0;
  const Tensor before = torch::arange(-1, rows - 1);
  before.index_put_({begins.masked_select(filled)}, from_state.masked_select(filled));
  const auto out = ops::take({table}, before)[0].view_as(x);
  state = ops::take({table}, torch::where(filled, ends, from_state))[0];
  return out;
}

}  // namespace lrnn::mixers
