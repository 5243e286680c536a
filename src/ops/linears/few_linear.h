#pragma once
#include <torch/types.h>

// The product of many rows with a matrix of few, on a GPU: libraries fill whole tiles for it.
namespace lrnn::ops {

// Whether there is a kernel for x [rows,D] and weight [n,D].
bool has_few_rows(const torch::Tensor& x, const torch::Tensor& weight);

// x W^T [rows,n]; below autograd. Without a kernel it is its definition.
torch::Tensor few_linear(const torch::Tensor& x, const torch::Tensor& weight);
torch::Tensor few_linear_definition(const torch::Tensor& x, const torch::Tensor& weight);

// dweight [n,D]. dx [rows,D] becomes dy W, or with `add` grows by it.
torch::Tensor few_linear_backward(const torch::Tensor& dy, const torch::Tensor& x,
                                  const torch::Tensor& weight, torch::Tensor& dx, bool add);

}  // namespace lrnn::ops
