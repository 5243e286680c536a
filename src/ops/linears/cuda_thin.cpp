#include <torch/library.h>

#include "base/error.h"
#include "kernels/cuda/rows/thin_linear.h"
#include "ops/cuda/stream.h"
#include "ops/inner.h"
#include "ops/linears/thin_linear.h"
#include "ops/torch.h"

// Products of few rows of x, for CUDA tensors.
namespace lrnn::ops::cuda {
namespace {

torch::Tensor thin_product(const torch::Tensor& x, const torch::Tensor& weight) {
  const OnDevice on(x);
  check(x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1) && is_thin(x, weight),
        "[thin_linear] there is no kernel for ", x.sizes(), " and ", weight.sizes());
  kernels::cuda::ThinLinear p;
  p.type = kernel_type(x), p.rows = x.size(0), p.D = x.size(1), p.n = weight.size(0);
  p.x = x.const_data_ptr(), p.stride = x.stride(0), p.weight = weight.const_data_ptr();
  const torch::Tensor y = at::empty({p.rows, p.n}, x.options());
  kernels::cuda::thin_product(p, y.data_ptr(), on.stream());
  return y;
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) { m.impl("thin_linear", thin_product); }

}  // namespace lrnn::ops::cuda
