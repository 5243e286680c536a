#pragma once
#include "ops/stack.h"

// How an op reaches its back ends, below autograd.
namespace lrnn::ops {

template <class In> struct Backward {
  using Result = typename In::Result;
  const In& in;
  const Result& out;  // those that are saved
  const Result& d;    // gradients of the results; undefined where there are none
  const std::vector<Tensor>& kept;
};

template <class In>
using ForwardOf = typename In::Result (*)(const In& in, bool save, std::vector<Tensor>& kept);
template <class In> using BackwardOf = In (*)(const Backward<In>& b);

// The functions of a back end, of types that In says. They are found by the op's name, for a back
// end may live in another library.
struct Functions {
  using Any = void (*)();
  Any forward = nullptr, backward = nullptr;
};
Functions& functions(const char* op, c10::DeviceType device);

// The inner ops of an op, NAME_forward and NAME_backward.
struct InnerOps {
  explicit InnerOps(const char* name);

  // The functions that torch's dispatcher would call and do nothing else: tensors are plain ones of
  // the CPU or a GPU, and nobody (torch.func, a tracer, a mode written in Python, a profiler) asked
  // to see calls. Else null. A tiny model would notice the way through the dispatcher, on a stack
  // of boxed values.
  const Functions* direct(c10::DispatchKeySet keys, c10::DeviceType device) const;
  // Through the dispatcher.
  void call(const c10::OperatorHandle& which, const torch::Device& device, Stack& stack) const;

  const char* name;
  c10::OperatorHandle forward, backward;
  const Functions &cpu, &cuda;
};
template <class In> const InnerOps& inner_ops() {
  static const InnerOps ops(In::kName);
  return ops;
}

template <class T> c10::DispatchKeySet keys_of(const T& of) {
  c10::DispatchKeySet out;
  each_tensor(of, [&](const Tensor& x, const Field&) {
    if (x.defined()) out = out | x.key_set();
  });
  return out;
}

// Results, and with `save` in `kept` what backward will read.
template <class In>
typename In::Result call_forward(const In& in, bool save, std::vector<Tensor>& kept) {
  const InnerOps& ops = inner_ops<In>();
  const auto device = main_of(in).device();
  if (const auto* f = ops.direct(keys_of(in), device.type()))
    return reinterpret_cast<ForwardOf<In>>(f->forward)(in, save, kept);
  Stack stack;
  push(stack, in);
  stack.emplace_back(save);
  ops.call(ops.forward, device, stack);
  const c10::IValue* at = stack.data();
  typename In::Result out;
  each_tensor(out, [&](Tensor& x, const Field& field) {
    x = from_value(*at++);
    if (!matters(field, in)) x = Tensor();
  });
  kept = at->toTensorVector();
  return out;
}
template <class In> typename In::Result call_forward(const In& in) {
  std::vector<Tensor> kept;
  return call_forward(in, false, kept);
}

// Gradients; undefined where nobody made one.
template <class In> In call_backward(const Backward<In>& b) {
  const InnerOps& ops = inner_ops<In>();
  const auto device = main_of(b.in).device();
  auto keys = keys_of(b.in) | keys_of(b.out) | keys_of(b.d);
  for (const Tensor& x : b.kept) keys = keys | x.key_set();
  if (const auto* f = ops.direct(keys, device.type()))
    return reinterpret_cast<BackwardOf<In>>(f->backward)(b);
  Stack stack;
  push(stack, b.d);
  each_tensor(b.out, [&](const Tensor& x, const Field& field) {
    if (field.saved) stack.push_back(to_value(x));
  });
  push(stack, b.in);
  stack.emplace_back(b.kept);
  ops.call(ops.backward, device, stack);
  const auto list = stack[0].toTensorVector();
  const Slots given = slots(b.in);
  In out;
  size_t grad = 0, i = 0;
  each_tensor(out, [&](Tensor& x, const Field& field) {
    const Tensor& of = *given[i++].x;
    if (field.kind == Kind::kIndex) return;
    const Tensor& made = list[grad++];
    if (of.defined() && made.sym_sizes() == of.sym_sizes()) x = made;
  });
  return out;
}

}  // namespace lrnn::ops
