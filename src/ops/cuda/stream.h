#pragma once
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/types.h>

#include "kernels/cuda/rows/rows.h"
#include "ops/inner.h"

// What every op here does first: the device of its inputs is the current one, and work goes to its
// current stream.
namespace lrnn::ops::cuda {

class OnDevice {
 public:
  explicit OnDevice(const torch::Tensor& x) : guard_(x.device()) {}
  void* stream() const { return c10::cuda::getCurrentCUDAStream().stream(); }

 private:
  c10::cuda::CUDAGuard guard_;
};

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
