#include <torch/library.h>

#include "kernels/cuda/rows/rows.h"
#include "ops/cuda/stream.h"
#include "ops/linears/few_linear.h"
#include "ops/torch.h"

// Products with few rows in the matrix, for CUDA tensors.
namespace lrnn::ops::cuda {
namespace {

using torch::Tensor;

kernels::cuda::FewLinear few(const Tensor& x, const Tensor& weight) {
  check(x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1) && has_few_rows(x, weight),
        "[few_linear] there is no kernel for ", x.sizes(), " and ", weight.sizes());
  kernels::cuda::FewLinear p;
  p.type = kernel_type(x), p.rows = x.size(0), p.D = x.size(1), p.n = weight.size(0);
  p.x = x.const_data_ptr(), p.stride = x.stride(0), p.weight = weight.const_data_ptr();
  return p;
}

Tensor product(const Tensor& x, const Tensor& weight) {
  const OnDevice on(x);
  const auto p = few(x, weight);
  const Tensor y = at::empty({p.rows, p.n}, x.options());
  kernels::cuda::few_product(p, y.data_ptr(), on.stream());
  return y;
}

Tensor gradients(const Tensor& dy, const Tensor& x, const Tensor& weight, Tensor& dx, bool add) {
  const OnDevice on(x);
  const auto p = few(x, weight);
  check(dx.sizes() == x.sizes() && dx.scalar_type() == x.scalar_type() && dx.is_contiguous() &&
            reinterpret_cast<uintptr_t>(dx.const_data_ptr()) % 16 == 0,
        "[few_linear] dx must be contiguous ", x.sizes(), " in ", x.scalar_type());
  check(dy.dim() == 2 && dy.size(0) == p.rows && dy.size(1) == p.n &&
            dy.scalar_type() == x.scalar_type(),
        "[few_linear] dy must be [", p.rows, ",", p.n, "] in ", x.scalar_type());
  const Tensor grad = dy.contiguous();
  const Tensor partial = at::empty({kernels::cuda::few_parts(p), p.n, p.D},
                                   x.options().dtype(at::kFloat)),
               dweight = at::empty({p.n, p.D}, weight.options());
  kernels::cuda::few_gradients(p, grad.const_data_ptr(), dx.data_ptr(), add,
                               partial.mutable_data_ptr<float>(), on.stream());
  add_parts(partial, dweight, on.stream());
  return dweight;
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) {
  m.impl("few_linear", product);
  m.impl("few_linear_backward", gradients);
}

}  // namespace lrnn::ops::cuda
