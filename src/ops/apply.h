#pragma once
#include <torch/csrc/autograd/function.h>

#include "ops/again.h"
#include "ops/half.h"
#include "ops/stack.h"

// What a call of an op does, from the C++ function of its name down to a back end: checks, the node
// for autograd, and the way to the kernels, straight or through torch's dispatcher.
namespace lrnn::ops {

// ---------------------------------------------------------------------------------- to a back end

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

// ---------------------------------------------------------------------------------------- autograd

// Whether an input wants a gradient.
bool wants_gradient(c10::ArrayRef<Slot> inputs);
torch::autograd::edge_list edges_of(c10::ArrayRef<Slot> inputs);
// Gradients under create_graph, as torch.func.grad always asks for them, are as good as others.
// Whoever differentiates them is told that he cannot.
void refuse_next_derivative(const char* op, const variable_list& from, const variable_list& grads);
// As large as x, and one number in memory.
Tensor size_alone(const Tensor& x);

template <class In> struct OpNode final : torch::autograd::Node, MakesAgain {
  using Result = typename In::Result;
  In settings;  // the tensors are saved apart
  c10::SmallVector<KeptInput, 6> inputs;
  c10::SmallVector<SavedVariable, 2> results;  // those that backward reads
  std::vector<SavedVariable> kept;

  explicit OpNode(const In& in, c10::ArrayRef<Slot> given) : settings(in) {
    set_next_edges(edges_of(given));
    each_tensor(settings, [&](Tensor& x, const Field& field) {
      inputs.emplace_back(field.unused ? size_alone(x) : x);
      x.reset();
    });
  }
  void connect(const Result& out, const std::vector<Tensor>& made) {
    each_tensor(out, [&](const Tensor& x, const Field& field) {
      torch::autograd::set_history(x, shared_from_this());
      if (field.saved) results.emplace_back(x, true);
    });
    for (const auto& x : made) kept.emplace_back(x, false);
  }

  std::string name() const override { return std::string(In::kName) + "_backward"; }
  void release_variables() override {
    for (auto& saved : inputs) saved.reset_data();
    for (auto& saved : results) saved.reset_data();
    for (auto& saved : kept) saved.reset_data();
    forget_made();
  }
  variable_list apply(variable_list&& grads) override {
    bool any = false;
    for (const auto& grad : grads) any |= grad.defined();
    if (!any) return variable_list(num_outputs());
    check(!has_tangent(grads), "[", In::kName,
          "] has no second derivative, so its gradient has no ", "tangent (jvp)");
    std::lock_guard<std::mutex> lock(mutex_);
    size_t i = 0, j = 0, k = 0;
    In in = settings;
    each_tensor(in, [&](Tensor& x, const Field&) { x = inputs[i++].unpack(); });
    Result d, out;
    each_tensor(d, [&](Tensor& x, const Field&) { x = grads[j++]; });
    each_tensor(out, [&](Tensor& x, const Field& field) {
      if (field.saved) x = results[k++].unpack(shared_from_this());
    });
    std::vector<Tensor> list;
    for (auto& saved : kept) list.push_back(saved.unpack());
    In made = below_autograd([&] { return call_backward<In>({in, out, d, list}); });
    variable_list all, from = grads;
    all.reserve(num_outputs());
    each_tensor(made, [&](Tensor& x, const Field& field) {
      if (field.kind != Kind::kIndex) all.push_back(std::move(x));
    });
    each_tensor(in, [&](const Tensor& x, const Field&) { from.push_back(x); });
    if (at::GradMode::is_enabled()) refuse_next_derivative(In::kName, from, all);
    return all;
  }

 protected:
  // Those that say so: one pass over their inputs, with nothing kept.
  bool can_make_again() const override {
    return requires { In::kCheap; };
  }
  std::vector<Tensor> make_again() override {
    In in = settings;
    size_t i = 0;
    each_tensor(in, [&](Tensor& x, const Field&) { x = inputs[i++].unpack(); });
    std::vector<Tensor> out;
    const Result made = call_forward(in);
    each_tensor(made, [&](const Tensor& x, const Field&) { out.push_back(x); });
    return out;
  }
};

template <class In> void check_inputs(const In& in, const Slots& given) {
  const SizesByLetter sizes(In::kName, given);
  check_types(In::kName, given);
  if constexpr (requires { in.check(); }) in.check();
}
template <class In> void check_inputs(const In& in) { check_inputs(in, slots(in)); }

// The op itself: what the C++ function of the op's name calls.
template <class In>
typename In::Result apply_op(const In& in, typename In::Result (*definition)(const In&)) {
  if (is_half(in)) [[unlikely]]
    return to_half(apply_op(from_half(in), definition));
  const Slots given = slots(in);
  check_inputs(in, given);
  for (const auto& slot : given)
    if (has_tangent(*slot.x)) {
      const auto no_autocast = without_autocast();
      if constexpr (requires { in.cu_seqlens; })
        return by_definition(In::kName, definition, in, main_of(in));
      else
        return definition(in);
    }
  if (!wants_gradient(given)) return below_autograd([&] { return call_forward(in); });
  const std::shared_ptr<OpNode<In>> node(new OpNode<In>(in, given), torch::autograd::deleteNode);
  std::vector<Tensor> kept;
  const auto out = below_autograd([&] { return call_forward(in, true, kept); });
  node->connect(out, kept);
  return out;
}

}  // namespace lrnn::ops
