#pragma once
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/types.h>

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

}  // namespace lrnn::ops::cuda
