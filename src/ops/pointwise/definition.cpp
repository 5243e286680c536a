#include "ops/pointwise/pointwise.h"
#include "ops/torch.h"

namespace lrnn::ops {

using torch::Tensor;

Tensor rms_norm_definition(const Tensor& x, const Tensor& weight, double eps) {
  const Tensor wide = x.to(at::promoteTypes(x.scalar_type(), torch::kFloat32));
  return (wide * torch::rsqrt(wide.square().mean(-1, true) + eps) * weight).to(x.scalar_type());
}

Tensor l2_norm_definition(const Tensor& x, double eps) {
  const Tensor wide = x.to(at::promoteTypes(x.scalar_type(), torch::kFloat32));
  return (wide * torch::rsqrt(wide.square().sum(-1, true) + eps)).to(x.scalar_type());
}

Tensor swiglu_definition(const Tensor& gate, const Tensor& up) {
  const auto wide = at::promoteTypes(gate.scalar_type(), torch::kFloat32);
  return (torch::silu(gate.to(wide)) * up.to(wide)).to(gate.scalar_type());
}

}  // namespace lrnn::ops
