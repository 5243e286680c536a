#include "ops/norm/norm.h"

#include "ops/declare.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

NormResult rms_norm_of(const RmsNorm& in) {
  return apply_op<RmsNorm>(in, [](const RmsNorm& in) -> NormResult {
    return {rms_norm_definition(in.x, in.weight, in.eps)};
  });
}
NormResult l2_norm_of(const L2Norm& in) {
  return apply_op<L2Norm>(
      in, [](const L2Norm& in) -> NormResult { return {l2_norm_definition(in.x, in.eps)}; });
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  declare<RmsNorm, rms_norm_of>(m);
  declare<L2Norm, l2_norm_of>(m);
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  return rms_norm_of({x, weight, eps}).y;
}
Tensor l2_norm(const Tensor& x, double eps) { return l2_norm_of({x, eps}).y; }

Tensor rms_norm_definition(const Tensor& x, const Tensor& weight, double eps) {
  const Tensor wide = x.to(at::promoteTypes(x.scalar_type(), torch::kFloat32));
  return (wide * torch::rsqrt(wide.square().mean(-1, true) + eps) * weight).to(x.scalar_type());
}

Tensor l2_norm_definition(const Tensor& x, double eps) {
  const Tensor wide = x.to(at::promoteTypes(x.scalar_type(), torch::kFloat32));
  return (wide * torch::rsqrt(wide.square().sum(-1, true) + eps)).to(x.scalar_type());
}

}  // namespace lrnn::ops
