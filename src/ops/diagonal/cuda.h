#pragma once
#include "ops/diagonal/diagonal.h"

namespace lrnn::ops::cuda {

// The diagonal recurrence on CUDA tensors, for the ops that are made of it.
struct DiagonalCuda {
  static std::vector<Tensor> keep(const Diagonal& in);
  static void forward(const Diagonal& in, const DiagonalResult& out,
                      const std::vector<Tensor>& kept);
  static void backward(const Diagonal& in, const DiagonalResult& d, const std::vector<Tensor>& kept,
                       const Diagonal& grads);
};

}  // namespace lrnn::ops::cuda
