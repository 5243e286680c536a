#pragma once
#include <torch/types.h>

#include <vector>

// Several tensors as one. Where they lie side by side in memory, as the outputs of one product and
// the parameters of one optimiser do, nothing is copied.
namespace lrnn::ops {

// Whether the tensors are one tensor along `dim` already.
bool side_by_side(const std::vector<torch::Tensor>& parts, int64_t dim);

// The tensors joined along `dim`: a view where they are side by side, else a copy; and the pieces
// of a tensor. Below autograd.
torch::Tensor joined(const std::vector<torch::Tensor>& parts, int64_t dim);
std::vector<torch::Tensor> pieces(const torch::Tensor& x, const std::vector<int64_t>& sizes,
                                  int64_t dim);

// The same with gradients, which are pieces and joined in turn.
torch::Tensor join(const std::vector<torch::Tensor>& parts, int64_t dim);
torch::Tensor join_definition(const std::vector<torch::Tensor>& parts, int64_t dim);
std::vector<torch::Tensor> split(const torch::Tensor& x, const std::vector<int64_t>& sizes,
                                 int64_t dim);
std::vector<torch::Tensor> split_definition(const torch::Tensor& x,
                                            const std::vector<int64_t>& sizes, int64_t dim);

}  // namespace lrnn::ops
