#pragma once
#include <torch/types.h>

#include <vector>

#include "ops/linears/weight.h"

// Several tensors as one, and one as several.
namespace lrnn::ops {

// The pieces of x along `dim`, where they lie. Below autograd.
std::vector<torch::Tensor> pieces(const torch::Tensor& x, const std::vector<int64_t>& sizes,
                                  int64_t dim);
// The same with gradients, which are joined.
std::vector<torch::Tensor> split(const torch::Tensor& x, const std::vector<int64_t>& sizes,
                                 int64_t dim);
std::vector<torch::Tensor> split_definition(const torch::Tensor& x,
                                            const std::vector<int64_t>& sizes, int64_t dim);

// The weights of a stack as one tensor: its whole, where it has one, else a copy. The gradients of
// the parts are pieces of that of the whole.
torch::Tensor join(const WeightStack::Ready& stack);
torch::Tensor join_definition(const std::vector<torch::Tensor>& parts, int64_t dim);

}  // namespace lrnn::ops
