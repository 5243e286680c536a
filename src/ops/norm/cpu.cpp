#include "ops/back_end.h"
#include "ops/norm/norm.h"
#include "ops/rows.h"
#include "ops/torch.h"

// RMSNorm and the L2 norm of CPU tensors.
namespace lrnn::ops {
namespace {

using kernels::rows::Norm;
using kernels::rows::Real;
using kernels::rows::table;

template <class Io, class In> Norm<Io> arguments(const In& in, const RowView& x) {
  const Tensor weight = weight_of(in);
  return {x.data<Io>(),
          x.stride,
          weight.defined() ? weight.template const_data_ptr<Real<Io>>() : nullptr,
          In::kMean ? 1 / double(x.D) : 1,
          in.eps,
          x.D};
}

template <class In_> struct NormCpu {
  using In = In_;

  static void forward(const In& in, NormResult& out, std::vector<Tensor>&) {
    with_element(In::kName, in.x.scalar_type(), [&](auto element) {
      using Io = decltype(element);
      const RowView x = row_view(in.x);
      const auto a = arguments<Io>(in, x);
      Io* const y = static_cast<Io*>(out.y.mutable_data_ptr());
      Ranges(x.rows, x.D).each([&](int64_t, int64_t first, int64_t last) {
        table<Io>().norm(a, first, last, y);
      });
    });
  }

  static void backward(const Backward<In>& b, In& grads) {
    with_element(In::kName, b.in.x.scalar_type(), [&](auto element) {
      using Io = decltype(element);
      using R = Real<Io>;
      const RowView x = row_view(b.in.x), dy = row_view(b.d.y);
      const auto a = arguments<Io>(b.in, x);
      const Ranges ranges(x.rows, x.D);
      // One range adds to the gradient itself, several to rows of their own first.
      const Tensor dweight = weight_of(grads);
      const int64_t parts = dweight.defined() ? std::max<int64_t>(1, ranges.count()) : 0;
      const Tensor partial = parts > 1 ? at::empty({parts, x.D}, dweight.options()) : dweight;
      R* const sums = parts ? partial.template mutable_data_ptr<R>() : nullptr;
      std::fill(sums, sums + parts * x.D, R(0));
      Io* const dx = static_cast<Io*>(grads.x.mutable_data_ptr());
      ranges.each([&](int64_t i, int64_t first, int64_t last) {
        table<Io>().norm_backward(a, first, last, dy.data<Io>(), dy.stride, dx,
                                  sums ? sums + i * x.D : nullptr);
      });
      if (parts > 1) add_up(sums, parts, x.D, dweight.template mutable_data_ptr<R>());
    });
  }
};

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  cpu_back_end<NormCpu<RmsNorm>>(m);
  cpu_back_end<NormCpu<L2Norm>>(m);
}

}  // namespace
}  // namespace lrnn::ops
