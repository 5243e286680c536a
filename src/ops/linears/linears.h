#pragma once
#include <torch/types.h>

#include <vector>

namespace lrnn::ops {

// x [..,D] times each of the weights [out,D], transposed: [..,out] each. One node of the graph, so
// that a small model does not pay for a dozen, and dx is added up inside the products. Follows
// autocast as torch::linear does.
std::vector<torch::Tensor> linears(const torch::Tensor& x, std::vector<torch::Tensor> weights);
std::vector<torch::Tensor> linears_definition(const torch::Tensor& x,
                                              const std::vector<torch::Tensor>& weights);
torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight);

// The same with results of the given shapes, which a view of each would have cost a node; x is read
// as rows of D, however its last dimensions are divided.
using Shapes = std::vector<std::vector<int64_t>>;
std::vector<torch::Tensor> linears(const torch::Tensor& x, std::vector<torch::Tensor> weights,
                                   const Shapes& shapes);

}  // namespace lrnn::ops
