#include "kernels/cuda/rows/rows.h"
#include "ops/cuda/stream.h"
#include "ops/inner.h"
#include "ops/torch.h"

// The CUDA kernels of small block-diagonal products: tensors in, pointers out.
namespace lrnn::ops::cuda {
namespace {

using torch::Tensor;

kernels::cuda::BlockLinear block_sizes(const Tensor& x, int64_t in, int64_t out) {
  check(in <= kernels::cuda::kMostBlockSide && out <= kernels::cuda::kMostBlockSide,
        "[block_linear] the GPU kernels serve blocks of up to ", kernels::cuda::kMostBlockSide,
        " channels, got ", in, " and ", out);
  return {.type = kernel_type(x), .rows = x.size(0), .blocks = x.size(1), .in = in, .out = out};
}

// x [rows,blocks,in], weight [blocks,out,in]; transposed: x [rows,blocks,out].
Tensor block_product(const Tensor& x_, const Tensor& weight_, bool transposed) {
  const OnDevice on(x_);
  const Tensor x = x_.contiguous(), weight = weight_.to(x.scalar_type()).contiguous();
  const auto p = block_sizes(x, weight.size(2), weight.size(1));
  Tensor y = at::empty({p.rows, p.blocks, transposed ? p.in : p.out}, x.options());
  kernels::cuda::block_product(p, weight.const_data_ptr(), x.const_data_ptr(), transposed,
                               y.data_ptr(), on.stream());
  return y;
}

Tensor block_gradient(const Tensor& dy_, const Tensor& x_) {
  const OnDevice on(x_);
  const Tensor x = x_.contiguous(), dy = dy_.to(x.scalar_type()).contiguous();
  const auto p = block_sizes(x, x.size(2), dy.size(2));
  const Tensor partial = at::empty({kernels::cuda::block_parts(p), p.blocks, p.out, p.in},
                                   x.options().dtype(wide_type(x)));
  kernels::cuda::block_gradient(p, dy.const_data_ptr(), x.const_data_ptr(), partial.data_ptr(),
                                on.stream());
  return partial.sum(0).to(x.scalar_type());
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) {
  m.impl("block_product", block_product);
  m.impl("block_gradient", block_gradient);
}

}  // namespace lrnn::ops::cuda
