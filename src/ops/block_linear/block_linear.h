#pragma once
#include <torch/types.h>

namespace lrnn::ops {

// A matrix for every block of the channels, y_b = W_b x_b: x [..,blocks*in] and weight
// [blocks,out,in] give [..,blocks,out]. Follows autocast as torch::linear does. On a GPU small
// blocks have kernels of their own: as products of matrices they are mostly padding.
torch::Tensor block_linear(const torch::Tensor& x, const torch::Tensor& weight);
// The definition, which is also what the CPU and large blocks use: products of matrices.
torch::Tensor block_linear_definition(const torch::Tensor& x, const torch::Tensor& weight);

}  // namespace lrnn::ops
