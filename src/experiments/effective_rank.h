#pragma once
#include "ops/torch.h"

namespace lrnn::experiments {

// How many directions a matrix uses, as a number that need not be whole: exp of the entropy of its
// singular values, divided by their sum (Roy and Vetterli 2007). 1 of a matrix of rank one, n where
// n singular values are alike, 0 of a matrix of zeros. No factor changes it.
//
// matrices [..,K,V], any dtype and device; float64 [..] on the CPU.
torch::Tensor effective_rank(const torch::Tensor& matrices);

}  // namespace lrnn::experiments
