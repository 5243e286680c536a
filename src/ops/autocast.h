#pragma once
#include <ATen/autocast_mode.h>

#include "ops/stack.h"

// Under torch.autocast. A recurrence or convolution is what a matrix product is: its inputs take
// the type that autocast asks for, while gates and parameters that may be wide stay so, and states
// are float32. What works on rows alone (norms, SwiGLU) computes in float32 anyway: there the
// widest of its inputs decides. float64 is left alone, as torch leaves it.
namespace lrnn::ops {

// The type that inputs of the main input's type take.
template <class In> at::ScalarType autocast_type(const In& in, c10::DeviceType device) {
  std::optional<at::ScalarType> widest;
  bool rows = false;
  each_tensor(in, [&](const Tensor& x, const Field& field) {
    if (field.need == Need::kMain) rows = field.shape[0] == '*';
    if (!x.defined() || field.kind != Kind::kIo) return;
    widest = widest ? at::promoteTypes(*widest, x.scalar_type()) : x.scalar_type();
  });
  return rows || *widest == at::kDouble ? *widest : at::autocast::get_autocast_dtype(device);
}

template <class In> In autocast(In in, c10::DeviceType device) {
  const auto type = autocast_type(in, device);
  if (type == at::kDouble) return in;
  each_tensor(in, [&](Tensor& x, const Field& field) {
    if (!x.defined()) return;
    const bool may_be_wide = field.kind == Kind::kIoOrWide && x.scalar_type() != type;
    if (field.kind == Kind::kIo) x = at::autocast::cached_cast(type, x, device);
    if (field.kind == Kind::kWide || may_be_wide)
      x = at::autocast::cached_cast(at::kFloat, x, device);
  });
  return in;
}

template <class In, c10::DeviceType kDevice>
void boxed_autocast(const c10::OperatorHandle& op, Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard once(c10::autocast_dispatch_keyset);
  const c10::IValue* at = first_argument(op, *stack);
  const In in = autocast(pull<In>(at), kDevice);
  torch::jit::drop(*stack, arguments_of(op));
  push(*stack, in);
  op.callBoxed(stack);
}

}  // namespace lrnn::ops
