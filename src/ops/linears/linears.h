#pragma once
#include <torch/types.h>

#include <vector>

#include "ops/linears/weight.h"

namespace lrnn::ops {

// x [..,D] times each of the weights [out,D], transposed: [..,out] each. One node of the graph, so
// that a small model does not pay for a dozen, and dx is added up inside the products. Follows
// autocast as torch::linear does.
std::vector<torch::Tensor> linears(const torch::Tensor& x, const std::vector<Weight>& weights);
std::vector<torch::Tensor> linears_definition(const torch::Tensor& x,
                                              const std::vector<torch::Tensor>& weights);
torch::Tensor linear(const torch::Tensor& x, const Weight& weight);

// The same with results of the given shapes, which a view of each would have cost a node; x is read
// as rows of D, however its last dimensions are divided.
using Shapes = std::vector<std::vector<int64_t>>;
std::vector<torch::Tensor> linears(const torch::Tensor& x, const std::vector<Weight>& weights,
                                   const Shapes& shapes);

// Products with weights of which some are one matrix, where that is worth it: on a GPU a small
// product costs a launch, whatever its size.
struct Joint {
  std::vector<size_t> which;        // of the weights, in the order in which they lie
  torch::Tensor whole, whole_copy;  // as in WeightStack
};
struct Products {
  std::vector<torch::Tensor> each;  // of the given shapes; undefined where they are in `joint`
  torch::Tensor joint;              // [..,sum of out], or undefined
};
Products linears(const torch::Tensor& x, const std::vector<Weight>& weights, const Shapes& shapes,
                 const Joint& joint);
// One product, [..,sum of out]; and that of each part, out of one where it is worth it.
torch::Tensor linear(const torch::Tensor& x, const WeightStack& stack);
std::vector<torch::Tensor> linears(const torch::Tensor& x, const WeightStack& stack);

// Whether weights with so many rows are better read as one: on a GPU, and if rows of all results
// lie on 16 bytes.
bool better_as_one(const torch::Tensor& x, const std::vector<int64_t>& outs);

// A matrix for every block of the channels, y_b = W_b x_b: x [..,blocks*in] and weight
// [blocks,out,in] give [..,blocks,out]. Follows autocast as torch::linear does. On a GPU small
// blocks have kernels of their own: as products of matrices they are mostly padding.
torch::Tensor block_linear(const torch::Tensor& x, const torch::Tensor& weight);
// The definition, which is also what the CPU and large blocks use: products of matrices.
torch::Tensor block_linear_definition(const torch::Tensor& x, const torch::Tensor& weight);

// A matrix product in the type that its operands have, under autocast too: what acts on a state is
// not rounded on the way.
torch::Tensor wide_matmul(const torch::Tensor& a, const torch::Tensor& b);
torch::Tensor wide_matmul_definition(const torch::Tensor& a, const torch::Tensor& b);

}  // namespace lrnn::ops
