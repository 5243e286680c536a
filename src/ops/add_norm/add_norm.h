#pragma once
#include <torch/types.h>

#include <utility>

namespace lrnn::ops {

// A residual stream and the norm before the next layer:  s = x + y,  h = rms_norm(s, weight, eps).
// Without y (undefined) s is x. With `for_products` h is what a matrix product would make of it
// under autocast. On a GPU one pass, and its gradient another.
std::pair<torch::Tensor, torch::Tensor> add_norm(const torch::Tensor& x, const torch::Tensor& y,
                                                 const torch::Tensor& weight, double eps,
                                                 bool for_products);
// The definition, in the type of x.
std::pair<torch::Tensor, torch::Tensor> add_norm_definition(const torch::Tensor& x,
                                                            const torch::Tensor& y,
                                                            const torch::Tensor& weight,
                                                            double eps);

}  // namespace lrnn::ops
