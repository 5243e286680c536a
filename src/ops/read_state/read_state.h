#pragma once
#include <torch/types.h>

namespace lrnn::ops {

// scale * S^T q: q [n,H,K] and S [n,H,K,V], of one dtype, give [n,H,V].
torch::Tensor read_state(const torch::Tensor& q, const torch::Tensor& S, double scale);
torch::Tensor read_state_definition(const torch::Tensor& q, const torch::Tensor& S, double scale);

}  // namespace lrnn::ops
