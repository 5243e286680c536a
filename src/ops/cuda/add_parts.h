#pragma once
#include "kernels/cuda/rows/sums.h"
#include "ops/inner.h"

namespace lrnn::ops::cuda {

// Fills `to` with the sums of the rows of `partial` [parts,..]. With across > 1 a row is a matrix
// of so many rows, and `to` has it transposed.
inline void add_parts(const torch::Tensor& partial, const torch::Tensor& to, void* stream,
                      int64_t across = 1) {
  kernels::cuda::Parts p;
  p.from = partial.const_data_ptr(), p.parts = partial.size(0), p.n = to.numel();
  p.type = kernel_type(to), p.wide = partial.scalar_type() == torch::kFloat64;
  p.to = to.data_ptr(), p.across = across;
  kernels::cuda::add_parts(p, stream);
}

}  // namespace lrnn::ops::cuda
