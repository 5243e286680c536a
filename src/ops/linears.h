#pragma once
#include <torch/types.h>

#include <vector>

namespace lrnn::ops {

// x [..,D] times each of the weights [out,D], transposed: [..,out] each. One node of the graph, so
// that a small model does not pay for a dozen, and dx is added up inside the products. Follows
// autocast as torch::linear does.
std::vector<torch::Tensor> linears(const torch::Tensor& x, std::vector<torch::Tensor> weights);
torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight);

}  // namespace lrnn::ops
