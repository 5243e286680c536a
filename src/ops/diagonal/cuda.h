#pragma once
#include "ops/diagonal/diagonal.h"

// The diagonal recurrence on CUDA tensors, for the ops that are made of it.
namespace lrnn::ops::cuda {

DiagonalForwardFunction diagonal_forward_cuda;
DiagonalBackwardFunction diagonal_backward_cuda;

}  // namespace lrnn::ops::cuda
