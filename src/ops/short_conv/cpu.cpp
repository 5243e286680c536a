#include <cstring>

#include "ops/back_end.h"
#include "ops/rows.h"
#include "ops/short_conv/short_conv.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

using kernels::rows::Conv;
using kernels::rows::Real;
using kernels::rows::table;

constexpr int64_t kRangeValues = 16384;  // a range recomputes W-1 tokens, so it should be long

template <class Io> Io* data_of(const Tensor& x) {
  return x.defined() ? static_cast<Io*>(x.data_ptr()) : nullptr;
}

// What the kernel reads, and the memory behind it.
template <class Io> struct Inputs {
  using R = Real<Io>;
  std::vector<int64_t> begin;
  std::vector<R> weight;  // [W,D]
  std::vector<Io> zeros;
  RowView x;
  Conv<Io> a;

  explicit Inputs(const ShortConv& in) : zeros(size_t(in.x.size(2))), x(row_view(in.x)) {
    const int64_t D = in.x.size(2), W = in.weight.size(2), T = in.x.size(1);
    if (in.cu_seqlens.defined()) {
      const int64_t* const cu = in.cu_seqlens.const_data_ptr<int64_t>();
      begin.assign(cu, cu + in.cu_seqlens.numel());
    } else {
      for (int64_t b = 0; b <= in.x.size(0); ++b) begin.push_back(b * T);
    }
    const R* from = in.weight.const_data_ptr<R>();
    weight.resize(size_t(D * W));
    for (int64_t d = 0; d < D; ++d)
      for (int64_t i = 0; i < W; ++i) weight[size_t(i * D + d)] = from[d * W + i];
    a = {x.data<Io>(),
         x.stride,
         weight.data(),
         data_of<R>(in.bias),
         data_of<Io>(in.state),
         zeros.data(),
         begin.data(),
         int64_t(begin.size()) - 1,
         D,
         W,
         in.silu};
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
void pass_through(const std::vector<int64_t>& begin, const Tensor& dnext, const Tensor& dstate) {
  const int64_t W = dstate.size(2);
  for (size_t s = 0; s + 1 < begin.size(); ++s) {
    const int64_t length = begin[s + 1] - begin[s];
    if (length < W)
      dstate[int64_t(s)].slice(1, length, W).add_(dnext[int64_t(s)].slice(1, 0, W - length));
  }
}

struct ShortConvCpu {
  using In = ShortConv;

  static void forward(const In& given, ShortConvResult& out, std::vector<Tensor>&) {
    with_element(In::kName, given.x.scalar_type(), [&](auto element) {
      using Io = decltype(element);
      const Inputs<Io> in(given);
      const auto& a = in.a;
      Io *const y = data_of<Io>(out.y), *const next = data_of<Io>(out.state);
      Ranges(a.begin[a.sequences], a.D, kRangeValues)
          .each([&](int64_t, int64_t first, int64_t last) { table<Io>().conv(a, first, last, y); });
      Ranges(a.sequences, a.W * a.D, kRangeValues).each([&](int64_t, int64_t first, int64_t last) {
        for (int64_t s = first; s < last; ++s) next_state(a, s, next);
      });
    });
  }

  static void backward(const Backward<In>& b, In& grads) {
    with_element(In::kName, b.in.x.scalar_type(), [&](auto element) {
      using Io = decltype(element);
      using R = Real<Io>;
      const Inputs<Io> in(b.in);
      const auto& a = in.a;
      const int64_t W = a.W, D = a.D;
      const RowView dy = row_view(b.d.y.defined() ? b.d.y : at::zeros_like(b.in.x));
      if (a.state) grads.state.zero_();

      // Per range: W rows of dweight, one of dbias, and W rows to work in.
      const Ranges ranges(a.begin[a.sequences], D, kRangeValues);
      const int64_t sums = (W + 1) * D;
      const int64_t parts = std::max<int64_t>(1, ranges.count());
      const Tensor partial = at::empty({parts + 1, sums}, b.in.weight.options());  // and the total
      R *const to_sums = partial.mutable_data_ptr<R>(), *const total = to_sums + parts * sums;
      std::fill(to_sums, total, R(0));
      ranges.each([&](int64_t i, int64_t first, int64_t last) {
        std::vector<R> scratch(size_t(W * D));
        R* own = to_sums + i * sums;
        table<Io>().conv_backward(
            a, first, last,
            {dy.data<Io>(), dy.stride, data_of<Io>(b.d.state), data_of<Io>(grads.x),
             data_of<Io>(grads.state), own, a.bias ? own + W * D : nullptr, scratch.data()});
      });
      if (a.state && b.d.state.defined()) pass_through(in.begin, b.d.state, grads.state);

      add_up(to_sums, parts, sums, total);
      R *const dweight = data_of<R>(grads.weight), *const dbias = data_of<R>(grads.bias);
      for (int64_t d = 0; d < D; ++d)
        for (int64_t w = 0; w < W; ++w) dweight[d * W + w] = total[w * D + d];
      if (dbias) std::copy(total + W * D, total + sums, dbias);
    });
  }
};

TORCH_LIBRARY_FRAGMENT(lrnn, m) { cpu_back_end<ShortConvCpu>(m); }

}  // namespace
}  // namespace lrnn::ops
