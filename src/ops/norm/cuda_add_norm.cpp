#include "kernels/cuda/rows/rows.h"
#include "ops/cuda/stream.h"
#include "ops/rows.h"
#include "ops/torch.h"

// The CUDA kernels of add_norm: the op has checked the sizes and types.
namespace lrnn::ops::cuda {
namespace {

using kernels::cuda::RowArray;
using torch::Tensor;

RowArray array_of(const RowView& x) { return {x.tensor.data_ptr(), x.stride}; }
RowArray new_rows(const Tensor& x) { return {x.data_ptr(), x.size(-1)}; }

std::tuple<Tensor, Tensor> add_norm(const Tensor& x, const MaybeTensor& y, const Tensor& weight,
                                    double eps, at::ScalarType type) {
  const OnDevice on(x);
  const RowView in = row_view(x), add = row_view(y.value_or(x));
  const Tensor w = weight.contiguous();
  const Tensor s = y ? unfilled(x) : Tensor(), h = at::empty(x.sizes(), x.options().dtype(type));
  kernels::cuda::AddNorm p;
  p.rows = in.rows, p.D = in.D, p.eps = eps, p.weight = w.const_data_ptr();
  p.x_type = kernel_type(x), p.h_type = kernel_type(h), p.x = array_of(in), p.h = new_rows(h);
  if (y) p.y_type = kernel_type(*y), p.y = array_of(add), p.s = new_rows(s);
  kernels::cuda::add_norm_forward(p, on.stream());
  return {y ? s : none(x), h};
}

std::tuple<Tensor, Tensor, Tensor> add_norm_backward(const MaybeTensor& ds, const Tensor& dh,
                                                     const Tensor& s, const Tensor& weight,
                                                     double eps, at::ScalarType y) {
  const OnDevice on(s);
  const RowView in = row_view(s), grad = row_view(dh), more = row_view(ds.value_or(s));
  const Tensor w = weight.contiguous(), dx = unfilled(s);
  const Tensor dy = y == s.scalar_type() ? dx : at::empty(s.sizes(), s.options().dtype(y));
  kernels::cuda::AddNorm p;
  p.rows = in.rows, p.D = in.D, p.eps = eps, p.weight = w.const_data_ptr();
  p.x_type = kernel_type(s), p.y_type = kernel_type(dy), p.h_type = kernel_type(dh);
  p.s = array_of(in);
  const Tensor partial =
      at::empty({kernels::cuda::add_norm_parts(in.rows, in.D), in.D}, w.options());
  kernels::cuda::AddNormGradient g;
  if (ds) g.ds = array_of(more);
  g.dh = array_of(grad), g.dx = new_rows(dx), g.partial = partial.data_ptr();
  if (y != s.scalar_type()) g.dy = new_rows(dy);
  kernels::cuda::add_norm_backward(p, g, on.stream());
  const Tensor dweight = unfilled(weight);
  add_parts(partial, dweight, on.stream());
  return {dx, dy, dweight};
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) {
  m.impl("add_norm", add_norm);
  m.impl("add_norm_backward", add_norm_backward);
}

}  // namespace lrnn::ops::cuda
