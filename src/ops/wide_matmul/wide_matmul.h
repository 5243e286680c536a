#pragma once
#include <torch/types.h>

// A matrix product in the type that its operands have, under autocast too: what acts on a state is
// not rounded on the way.
namespace lrnn::ops {

torch::Tensor wide_matmul(const torch::Tensor& a, const torch::Tensor& b);
torch::Tensor wide_matmul_definition(const torch::Tensor& a, const torch::Tensor& b);

}  // namespace lrnn::ops
