#pragma once
#include <torch/types.h>

// The product of a few rows with a large matrix on a GPU, as decoding has it: it takes as long as
// reading the matrix, and libraries are made for more rows.
namespace lrnn::ops {

// Whether there is a kernel for x [rows,D] and weight [n,D].
bool is_thin(const torch::Tensor& x, const torch::Tensor& weight);

// x W^T [rows,n]; below autograd, without a gradient. Without a kernel it is its definition.
torch::Tensor thin_linear(const torch::Tensor& x, const torch::Tensor& weight);
torch::Tensor thin_linear_definition(const torch::Tensor& x, const torch::Tensor& weight);

}  // namespace lrnn::ops
