#pragma once
#include <torch/types.h>

// The small row-wise functions between the matrix products, fused because on a CPU each extra pass
// over the activations costs as much as a GEMM. Each has a definition of one line of torch.
namespace lrnn::ops {

// x / sqrt(mean(x^2) + eps) * weight over the last dimension; computed in float32 for bfloat16.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double eps);
torch::Tensor rms_norm_definition(const torch::Tensor& x, const torch::Tensor& weight, double eps);

// x / sqrt(sum(x^2) + eps) over the last dimension.
torch::Tensor l2_norm(const torch::Tensor& x, double eps);
torch::Tensor l2_norm_definition(const torch::Tensor& x, double eps);

// silu(gate) * up, elementwise.
torch::Tensor swiglu(const torch::Tensor& gate, const torch::Tensor& up);
// The same of the two halves of one product, [..,2D] -> [..,D]; its gradient needs no joining.
torch::Tensor swiglu(const torch::Tensor& gate_up);
torch::Tensor swiglu_definition(const torch::Tensor& gate, const torch::Tensor& up);

}  // namespace lrnn::ops
