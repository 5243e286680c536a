#include "kernels/cuda/rows/pointwise.h"

#include "kernels/cuda/rows/add_norm.h"
#include "ops/cuda/add_parts.h"
#include "ops/cuda/stream.h"
#include "ops/inner.h"
#include "ops/rows.h"
#include "ops/torch.h"

// The CUDA kernels of the norms and of SwiGLU. A norm with a gate is a norm and a SwiGLU, as it is
// in the models.
namespace lrnn::ops::cuda {
namespace {

using kernels::cuda::kNormRange;
using kernels::cuda::RowArray;
using kernels::cuda::RowSize;
using torch::Tensor;

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

void check_element(const char* op, const Tensor& x) {
  with_element(op, x.scalar_type(), [](auto) {});
}

struct NormTensors {
  RowView x;
  Tensor weight;
  kernels::cuda::NormInputs p;

  NormTensors(const char* op, const Tensor& x_, const Tensor& weight_, bool mean, double eps)
      : x(in_groups(x_) ? RowView{x_, x_.numel() / std::max<int64_t>(1, x_.size(-1)), x_.size(-1),
                                  x_.stride(-2)}
                        : row_view(x_)) {
    check_element(op, x_);
    p.type = kernel_type(x_), p.rows = x.rows, p.D = x.D, p.x = row_array(x);
    if (in_groups(x_)) p.x.per = x_.size(-2), p.x.outer = x_.stride(-3);
    p.share = mean ? 1 / double(x.D) : 1, p.eps = eps;
    if (!weight_.defined()) return;
    weight = weight_.to(computed_in(x_.scalar_type())).contiguous();
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

Tensor norm_of(const char* op, const Tensor& x, const Tensor& weight, bool mean, double eps) {
  check(x.dim() >= 1, "[", op, "] x must have at least one dimension");
  if (weight.defined()) {
    check(weight.dim() == 1 && weight.size(0) == x.size(-1), "[", op, "] weight must be [",
          x.size(-1), "] as the rows of x are, got ", weight.sizes());
    check_parameter(op, "weight", weight, x);
  }
  const OnDevice on(x);
  const NormTensors in(op, x, weight, mean, eps);
  Tensor y = unfilled(x);
  if (in.is_short()) {
    auto p = in.as_sum();
    p.x = in.p.x, p.h = fresh_rows(y);
    kernels::cuda::add_norm_forward(p, on.stream());
  } else {
    kernels::cuda::norm_forward(in.p, fresh_rows(y), on.stream());
  }
  return y;
}

std::tuple<Tensor, Tensor> norm_gradients(const char* op, const Tensor& dy, const Tensor& x,
                                          const Tensor& weight, bool mean, double eps) {
  check_gradient(op, dy, x);
  const OnDevice on(x);
  const NormTensors in(op, x, weight, mean, eps);
  const RowView grad = row_view(dy);
  const auto wide = x.options().dtype(computed_in(x.scalar_type()));
  Tensor dx = unfilled(x);
  if (!weight.defined()) {
    kernels::cuda::norm_backward(in.p, row_array(grad), fresh_rows(dx), nullptr, nullptr,
                                 on.stream());
    return {dx, Tensor()};
  }
  Tensor partial, dweight = unfilled(weight);
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
  return {dx, dweight};
}

Tensor rms_norm_cuda(const Tensor& x, const Tensor& weight, double eps) {
  return norm_of("rms_norm", x, weight, true, eps);
}
std::tuple<Tensor, Tensor> rms_norm_backward_cuda(const Tensor& dy, const Tensor& x,
                                                  const Tensor& weight, double eps) {
  return norm_gradients("rms_norm", dy, x, weight, true, eps);
}
Tensor l2_norm_cuda(const Tensor& x, double eps) { return norm_of("l2_norm", x, {}, false, eps); }
Tensor l2_norm_backward_cuda(const Tensor& dy, const Tensor& x, double eps) {
  return std::get<0>(norm_gradients("l2_norm", dy, x, {}, false, eps));
}

void check_swiglu_pair(const Tensor& gate, const Tensor& up) {
  check(gate.dim() >= 1, "[swiglu] gate must have at least one dimension");
  check(gate.sizes() == up.sizes(), "[swiglu] gate and up must have one shape, got ", gate.sizes(),
        " and ", up.sizes());
  check(gate.scalar_type() == up.scalar_type() && gate.device() == up.device(),
        "[swiglu] gate and up must have one dtype and device, got ", gate.scalar_type(), " on ",
        gate.device(), " and ", up.scalar_type(), " on ", up.device());
  check_element("swiglu", gate);
}

Tensor swiglu_cuda(const Tensor& gate, const Tensor& up) {
  check_swiglu_pair(gate, up);
  const OnDevice on(gate);
  const RowView g = row_view(gate), u = row_view(up);
  Tensor h = unfilled(gate);
  kernels::cuda::swiglu_forward({kernel_type(gate), g.rows, g.D}, row_array(g), row_array(u),
                                fresh_rows(h), on.stream());
  return h;
}

// Rows of dgate and dup are `stride` apart.
void swiglu_gradients(const Tensor& dh, const Tensor& gate, const Tensor& up, const Tensor& dgate,
                      const Tensor& dup, int64_t stride) {
  check_swiglu_pair(gate, up);
  check_gradient("swiglu", dh, gate);
  const OnDevice on(gate);
  const RowView d = row_view(dh), g = row_view(gate), u = row_view(up);
  kernels::cuda::swiglu_backward({kernel_type(gate), g.rows, g.D}, row_array(d), row_array(g),
                                 row_array(u), {dgate.data_ptr(), stride}, {dup.data_ptr(), stride},
                                 on.stream());
}

std::tuple<Tensor, Tensor> swiglu_backward_cuda(const Tensor& dh, const Tensor& gate,
                                                const Tensor& up) {
  // Side by side: the products they come from are often one.
  auto sizes = gate.sizes().vec();
  const int64_t D = sizes.back();
  sizes.back() = 2 * D;
  const Tensor both = at::empty(sizes, gate.options());
  const Tensor dgate = both.narrow(-1, 0, D), dup = both.narrow(-1, D, D);
  swiglu_gradients(dh, gate, up, dgate, dup, 2 * D);
  return {dgate, dup};
}

int64_t half_of(const Tensor& both) {
  check(both.dim() >= 1 && both.size(-1) % 2 == 0,
        "[swiglu] one tensor must hold two halves side by side, got ", both.sizes());
  return both.size(-1) / 2;
}

Tensor swiglu_halves_cuda(const Tensor& both) {
  const int64_t D = half_of(both);
  return swiglu_cuda(both.narrow(-1, 0, D), both.narrow(-1, D, D));
}

Tensor swiglu_halves_backward_cuda(const Tensor& dh, const Tensor& both) {
  const int64_t D = half_of(both);
  Tensor dboth = unfilled(both);
  swiglu_gradients(dh, both.narrow(-1, 0, D), both.narrow(-1, D, D), dboth.narrow(-1, 0, D),
                   dboth.narrow(-1, D, D), 2 * D);
  return dboth;
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) {
  m.impl("rms_norm", rms_norm_cuda);
  m.impl("rms_norm_backward", rms_norm_backward_cuda);
  m.impl("l2_norm", l2_norm_cuda);
  m.impl("l2_norm_backward", l2_norm_backward_cuda);
  m.impl("swiglu", swiglu_cuda);
  m.impl("swiglu_backward", swiglu_backward_cuda);
  m.impl("swiglu_halves", swiglu_halves_cuda);
  m.impl("swiglu_halves_backward", swiglu_halves_backward_cuda);
}

}  // namespace lrnn::ops::cuda
