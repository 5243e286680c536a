#include "kernels/cuda/rows/sigmoid.h"
#include "ops/cuda/stream.h"
#include "ops/inner.h"
#include "ops/rows.h"
#include "ops/torch.h"

// The CUDA kernels of wide_sigmoid.
namespace lrnn::ops::cuda {
namespace {

using torch::Tensor;

kernels::cuda::Sigmoid sigmoid_of(const Tensor& x, double scale) {
  with_element("wide_sigmoid", x.scalar_type(), [](auto) {});
  return {kernel_type(x), x.numel(), scale, x.const_data_ptr()};
}

Tensor wide_sigmoid(const Tensor& x_, double scale) {
  const OnDevice on(x_);
  const Tensor x = x_.contiguous(), y = at::empty(x.sizes(), x.options().dtype(wide_type(x)));
  kernels::cuda::sigmoid_forward(sigmoid_of(x, scale), y.data_ptr(), on.stream());
  return y;
}

Tensor wide_sigmoid_backward(const Tensor& dy_, const Tensor& x_, double scale) {
  const OnDevice on(x_);
  const Tensor x = x_.contiguous(), dy = dy_.to(wide_type(x)).contiguous(),
               dx = at::empty(x.sizes(), x.options());
  kernels::cuda::sigmoid_backward(sigmoid_of(x, scale), dy.const_data_ptr(), dx.data_ptr(),
                                  on.stream());
  return dx;
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) {
  m.impl("wide_sigmoid", wide_sigmoid);
  m.impl("wide_sigmoid_backward", wide_sigmoid_backward);
}

}  // namespace lrnn::ops::cuda
