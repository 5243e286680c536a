#include "ops/swiglu/swiglu.h"

#include "ops/declare.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

SwigluResult swiglu_of(const Swiglu& in) {
  return apply_op<Swiglu>(
      in, [](const Swiglu& in) -> SwigluResult { return {swiglu_definition(in.gate, in.up)}; });
}
SwigluResult swiglu_of_halves(const SwigluHalves& in) {
  return apply_op<SwigluHalves>(
      in, [](const SwigluHalves& in) -> SwigluResult { return {swiglu_definition(in.gate_up)}; });
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  declare<Swiglu, swiglu_of>(m);
  declare<SwigluHalves, swiglu_of_halves>(m);
}

}  // namespace

Tensor swiglu(const Tensor& gate, const Tensor& up) { return swiglu_of({gate, up}).h; }
Tensor swiglu(const Tensor& gate_up) { return swiglu_of_halves({gate_up}).h; }

Tensor swiglu_definition(const Tensor& gate, const Tensor& up) {
  const auto wide = at::promoteTypes(gate.scalar_type(), torch::kFloat32);
  return (torch::silu(gate.to(wide)) * up.to(wide)).to(gate.scalar_type());
}
Tensor swiglu_definition(const Tensor& gate_up) {
  const auto halves = gate_up.chunk(2, -1);
  return swiglu_definition(halves[0], halves[1]);
}

}  // namespace lrnn::ops
