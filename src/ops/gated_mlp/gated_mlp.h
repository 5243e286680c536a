#pragma once
#include <torch/types.h>

#include "ops/linears/weight.h"

namespace lrnn::ops {

// down(silu(gate(x)) * up(x)): x [..,D], gate and up [hidden,D], down [D,hidden]. Follows autocast
// as the three products would. On a GPU that can, many rows of bfloat16 are one kernel that leaves
// the hidden units on the chip, and one more for their gradients.
torch::Tensor gated_mlp(const torch::Tensor& x, const torch::Tensor& gate, const torch::Tensor& up,
                        const torch::Tensor& down);
torch::Tensor gated_mlp(const torch::Tensor& x, const WeightStack& gate_up, const Weight& down);
// The definition: the line above in plain torch.
torch::Tensor gated_mlp_definition(const torch::Tensor& x, const torch::Tensor& gate,
                                   const torch::Tensor& up, const torch::Tensor& down);

}  // namespace lrnn::ops
