#include "kernels/cuda/rows/rows.h"
#include "ops/back_end.h"
#include "ops/cuda/stream.h"
#include "ops/norm/norm.h"
#include "ops/rows.h"
#include "ops/torch.h"

// The CUDA kernels of the norms. A norm with a gate is a norm and a SwiGLU, as it is in the models.
namespace lrnn::ops::cuda {
namespace {

using kernels::cuda::kNormRange;
using kernels::cuda::RowArray;

RowArray row_array(const RowView& x) { return {x.tensor.data_ptr(), x.stride}; }
RowArray fresh_rows(const Tensor& x) { return {x.data_ptr(), x.size(-1)}; }

// Heads of a wider tensor, [..,H,D]: groups of rows. Nothing is copied.
bool in_groups(const Tensor& x) {
  const int64_t last = x.dim() - 3;
  if (x.is_contiguous() || x.dim() < 3 || x.stride(-1) != 1) return false;
  for (int64_t i = 0; i < last; ++i)
    if (x.size(i) > 1 && x.stride(i) != x.stride(i + 1) * x.size(i + 1)) return false;
  return true;
}

struct NormTensors {
  RowView x;
  Tensor weight;
  kernels::cuda::NormInputs p;

  NormTensors(const Tensor& x_, const Tensor& weight_, bool mean, double eps)
      : x(in_groups(x_) ? RowView{x_, x_.numel() / std::max<int64_t>(1, x_.size(-1)), x_.size(-1),
                                  x_.stride(-2)}
                        : row_view(x_)) {
    p.type = kernel_type(x_), p.rows = x.rows, p.D = x.D, p.x = row_array(x);
    if (in_groups(x_)) p.x.per = x_.size(-2), p.x.outer = x_.stride(-3);
    p.share = mean ? 1 / double(x.D) : 1, p.eps = eps;
    if (!weight_.defined()) return;
    weight = weight_.to(wide_type(x_)).contiguous();
    p.weight = weight.const_data_ptr();
  }

  // A norm with a weight is a residual sum's without the sum, which keeps short rows in registers.
  bool is_short() const { return weight.defined() && p.D <= kernels::cuda::kAddNormMost; }
  kernels::cuda::AddNorm as_sum() const {
    kernels::cuda::AddNorm sum;
    sum.rows = p.rows, sum.D = p.D, sum.eps = p.eps, sum.weight = p.weight;
    sum.x_type = sum.y_type = sum.h_type = p.type;
    return sum;
  }
};

template <class In_> struct NormCuda {
  using In = In_;
  static constexpr bool kAsGiven = true;

  static void forward(const In& given, NormResult& out, std::vector<Tensor>&) {
    const OnDevice on(given.x);
    const NormTensors in(given.x, weight_of(given), In::kMean, given.eps);
    if (in.is_short()) {
      auto p = in.as_sum();
      p.x = in.p.x, p.h = fresh_rows(out.y);
      kernels::cuda::add_norm_forward(p, on.stream());
    } else {
      kernels::cuda::norm_forward(in.p, fresh_rows(out.y), on.stream());
    }
  }

  static void backward(const Backward<In>& b, In& grads) {
    const OnDevice on(b.in.x);
    const NormTensors in(b.in.x, weight_of(b.in), In::kMean, b.in.eps);
    const RowView grad = row_view(b.d.y);
    const Tensor &dx = grads.x, dweight = weight_of(grads);
    const auto wide = dx.options().dtype(wide_type(dx));
    if (!dweight.defined()) {
      kernels::cuda::norm_backward(in.p, row_array(grad), fresh_rows(dx), nullptr, nullptr,
                                   on.stream());
      return;
    }
    Tensor partial;
    if (in.is_short()) {
      auto p = in.as_sum();
      p.s = in.p.x;
      partial = at::empty({kernels::cuda::add_norm_parts(p.rows, p.D), p.D}, wide);
      kernels::cuda::add_norm_backward(
          p, {{}, row_array(grad), fresh_rows(dx), {}, partial.data_ptr()}, on.stream());
    } else {
      const Tensor inverse = at::empty({in.p.rows}, wide);
      partial = at::empty({(in.p.rows + kNormRange - 1) / kNormRange, in.p.D}, wide);
      kernels::cuda::norm_backward(in.p, row_array(grad), fresh_rows(dx), inverse.data_ptr(),
                                   partial.data_ptr(), on.stream());
    }
    add_parts(partial, dweight, on.stream());
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  back_end<NormCuda<RmsNorm>>(m, c10::DispatchKey::CUDA);
  back_end<NormCuda<L2Norm>>(m, c10::DispatchKey::CUDA);
}

}  // namespace lrnn::ops::cuda
