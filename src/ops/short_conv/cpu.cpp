#include "ops/short_conv/cpu.h"

#include <cstring>

namespace lrnn::ops {
namespace {

using kernels::rows::Conv;
using kernels::rows::ConvGradient;
using kernels::rows::Real;
using kernels::rows::table;
using torch::Tensor;

constexpr int64_t kRangeValues = 16384;  // a range recomputes W-1 tokens, so it should be long

// What the kernel reads, and the memory behind it.
template <class Io> struct Inputs {
  using R = Real<Io>;
  std::vector<int64_t> begin;
  std::vector<R> weight;  // [W,D]
  std::vector<Io> zeros;
  Tensor bias, state;  // state: [S,W,D]
  RowView x;
  Conv<Io> a;

  Inputs(const Tensor& x_, const Tensor& weight_, const OptionalTensor& bias_,
         const OptionalTensor& state_, bool silu, const OptionalTensor& cu_seqlens)
      : zeros(size_t(x_.size(2))), x(row_view(x_)) {
    const auto real = computed_in(x_.scalar_type());
    const int64_t D = x_.size(2), W = weight_.size(2), T = x_.size(1);
    if (defined(cu_seqlens)) {
      const Tensor cu = cu_seqlens->contiguous();
      begin.assign(cu.const_data_ptr<int64_t>(), cu.const_data_ptr<int64_t>() + cu.numel());
    } else {
      for (int64_t b = 0; b <= x_.size(0); ++b) begin.push_back(b * T);
    }
    const Tensor w = weight_.to(real).contiguous();
    const R* from = w.const_data_ptr<R>();
    weight.resize(size_t(D * W));
    for (int64_t d = 0; d < D; ++d)
      for (int64_t i = 0; i < W; ++i) weight[size_t(i * D + d)] = from[d * W + i];
    if (defined(bias_)) bias = bias_->to(real).contiguous();
    if (defined(state_)) state = state_->to(x_.scalar_type()).transpose(1, 2).contiguous();
    a = {x.data<Io>(),
         x.stride,
         weight.data(),
         bias.defined() ? bias.const_data_ptr<R>() : nullptr,
         state.defined() ? static_cast<const Io*>(state.const_data_ptr()) : nullptr,
         zeros.data(),
         begin.data(),
         int64_t(begin.size()) - 1,
         D,
         W,
         silu};
  }
};

// The state after sequence s: its last W inputs, of which the old state has those before time 0.
template <class Io> void next_state(const Conv<Io>& a, int64_t s, Io* next) {
  const size_t bytes = size_t(a.D) * sizeof(Io);
  const int64_t length = a.begin[s + 1] - a.begin[s];
  for (int64_t j = 0; j < a.W; ++j) {
    const int64_t t = length - a.W + j;
    const Io* row = t >= 0    ? a.x + (a.begin[s] + t) * a.stride
                    : a.state ? a.state + (s * a.W + a.W + t) * a.D
                              : a.zeros;
    std::memcpy(next + (s * a.W + j) * a.D, row, bytes);
  }
}

// Rows of an old state that are still in the new one pass their gradient straight through.
void pass_through(const std::vector<int64_t>& begin, const Tensor& dnext, Tensor& dstate) {
  const int64_t W = dstate.size(1);
  for (size_t s = 0; s + 1 < begin.size(); ++s) {
    const int64_t length = begin[s + 1] - begin[s];
    if (length < W)
      dstate[int64_t(s)].slice(0, length, W).add_(dnext[int64_t(s)].slice(0, 0, W - length));
  }
}

}  // namespace

std::tuple<Tensor, Tensor> short_conv_cpu(const Tensor& x, const Tensor& weight,
                                          const OptionalTensor& bias, const OptionalTensor& state,
                                          bool silu, const OptionalTensor& cu_seqlens) {
  check_short_conv(x, weight, bias, state, cu_seqlens);
  return with_element("short_conv", x.scalar_type(), [&](auto element) {
    using Io = decltype(element);
    const Inputs<Io> in(x, weight, bias, state, silu, cu_seqlens);
    const auto& a = in.a;
    Tensor y = unfilled(x), next = at::empty({a.sequences, a.W, a.D}, x.options());
    Io *to_y = static_cast<Io*>(y.mutable_data_ptr()),
       *to_next = static_cast<Io*>(next.mutable_data_ptr());
    Ranges(a.begin[a.sequences], a.D, kRangeValues).each([&](int64_t, int64_t first, int64_t last) {
      table<Io>().conv(a, first, last, to_y);
    });
    Ranges(a.sequences, a.W * a.D, kRangeValues).each([&](int64_t, int64_t first, int64_t last) {
      for (int64_t s = first; s < last; ++s) next_state(a, s, to_next);
    });
    return std::tuple(y, next.transpose(1, 2));
  });
}

std::tuple<Tensor, Tensor, Tensor, Tensor> short_conv_backward_cpu(
    const Tensor& dy, const OptionalTensor& dnext_, const Tensor& x, const Tensor& weight,
    const OptionalTensor& bias, const OptionalTensor& state, bool silu,
    const OptionalTensor& cu_seqlens) {
  check_short_conv(x, weight, bias, state, cu_seqlens);
  check_gradient("short_conv", dy, x);
  return with_element("short_conv", x.scalar_type(), [&](auto element) {
    using Io = decltype(element);
    using R = Real<Io>;
    const Inputs<Io> in(x, weight, bias, state, silu, cu_seqlens);
    const auto& a = in.a;
    const int64_t W = a.W, D = a.D;
    const RowView grad = row_view(dy);
    Tensor dnext, dstate, dx = unfilled(x);
    if (defined(dnext_)) dnext = dnext_->transpose(1, 2).contiguous();
    if (a.state) dstate = at::zeros({a.sequences, W, D}, x.options());

    // Per range: W rows of dweight, one of dbias, and W rows to work in.
    const Ranges ranges(a.begin[a.sequences], D, kRangeValues);
    const int64_t sums = (W + 1) * D;
    Tensor partial = at::zeros({std::max<int64_t>(1, ranges.count()), sums},
                               x.options().dtype(computed_in(x.scalar_type())));
    R* to_sums = partial.mutable_data_ptr<R>();
    ranges.each([&](int64_t i, int64_t first, int64_t last) {
      std::vector<R> scratch(size_t(W * D));
      R* own = to_sums + i * sums;
      table<Io>().conv_backward(
          a, first, last,
          {grad.data<Io>(), grad.stride,
           dnext.defined() ? static_cast<const Io*>(dnext.const_data_ptr()) : nullptr,
           static_cast<Io*>(dx.mutable_data_ptr()),
           a.state ? static_cast<Io*>(dstate.mutable_data_ptr()) : nullptr, own,
           a.bias ? own + W * D : nullptr, scratch.data()});
    });
    if (a.state && dnext.defined()) pass_through(in.begin, dnext, dstate);

    const Tensor total = add_up(partial);
    Tensor dweight = total.narrow(0, 0, W * D).view({W, 1, D}).permute({2, 1, 0});
    Tensor dbias = a.bias ? total.narrow(0, W * D, D).to(bias->scalar_type()) : Tensor();
    return std::tuple(dx, dweight.to(weight.scalar_type()).contiguous(), dbias,
                      a.state ? dstate.transpose(1, 2).to(state->scalar_type()) : Tensor());
  });
}

}  // namespace lrnn::ops
