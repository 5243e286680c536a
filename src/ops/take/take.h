#pragma once
#include <torch/types.h>

#include <vector>

namespace lrnn::ops {

// The rows `index` (int64, any shape; a negative one is a row of zeros) of each of the tables
// [rows,..]: index's shape + [..] each. The gradient adds up the rows in their order, whatever the
// number of threads. One node of the graph for all tables.
std::vector<torch::Tensor> take(const std::vector<torch::Tensor>& tables,
                                const torch::Tensor& index);
std::vector<torch::Tensor> take_definition(const std::vector<torch::Tensor>& tables,
                                           const torch::Tensor& index);

// The rows `index` (int64 [n], each at most once) of x [rows,..]. The gradient is written, not
// added up.
torch::Tensor pick(const torch::Tensor& x, const torch::Tensor& index);
torch::Tensor pick_definition(const torch::Tensor& x, const torch::Tensor& index);

}  // namespace lrnn::ops
