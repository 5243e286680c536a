#pragma once
#include <torch/csrc/autograd/function.h>
#include <torch/library.h>

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "ops/field.h"
#include "ops/inner.h"
#include "ops/node.h"
#include "ops/sizes.h"

// An op is declared once: by the struct of its inputs, whose `fields` lists tensors and settings in
// the order of its arguments, and by that of its results. From these follow
//
//   the schemas of NAME (what users call), NAME_forward and NAME_backward (what back ends have),
//   the checks of shapes, types and devices, with their sentences,
//   the shapes of results and gradients, and with them the kernels for torch's Meta device,
//   autograd: what is saved, unpacked, differentiated and refused,
//   the registrations with torch's dispatcher.
//
// A back end is a struct with three functions:
//
//   static std::vector<Tensor> keep(const In& in);     // memory for what backward will read
//   static void forward(const In& in, Result& out, std::vector<Tensor>& kept);  // kept: maybe
//   empty static void backward(const Backward<In>& b, In& grads);
//
// It sees inputs as kernels read them (see `prepared`) and fills tensors that are there already.
// Results and gradients that nobody asked for are undefined in C++ and empty for torch.
namespace lrnn::ops {

using torch::Tensor;
using Slots = c10::SmallVector<Slot, 12>;
using Stack = torch::jit::Stack;

template <class In> struct Backward {
  using Result = typename In::Result;
  const In& in;
  const Result& out;  // those that are saved
  const Result& d;    // gradients of the results; undefined where there are none
  const std::vector<Tensor>& kept;
};

// --------------------------------------------------------------------------------- lists of fields

template <class X, class OnTensor, class OnSetting> struct FieldVisit {
  OnTensor& tensor;
  OnSetting& setting;
  void operator()(X& x, const Field& field) const { tensor(x, field); }
  template <class T> void operator()(T& x, const char* name) const { setting(x, name); }
};

// Calls tensor(x, field) and setting(x, name) in order.
template <class Self, class OnTensor, class OnSetting>
void each_field(Self& of, OnTensor&& tensor, OnSetting&& setting) {
  using X = std::conditional_t<std::is_const_v<Self>, const Tensor, Tensor>;
  std::remove_const_t<Self>::fields(
      of, FieldVisit<X, std::remove_reference_t<OnTensor>, std::remove_reference_t<OnSetting>>{
              tensor, setting});
}
template <class Self, class OnTensor> void each_tensor(Self& of, OnTensor&& tensor) {
  each_field(of, tensor, [](auto&, const char*) {});
}

template <class T> Slots slots(const T& of) {
  Slots out;
  each_tensor(of, [&](const Tensor& x, const Field& field) { out.push_back({field, &x}); });
  return out;
}
template <class T> c10::SmallVector<Tensor*, 12> tensors(T& of) {
  c10::SmallVector<Tensor*, 12> out;
  each_tensor(of, [&](Tensor& x, const Field&) { out.push_back(&x); });
  return out;
}

// ------------------------------------------------------------------------------ on torch's stack

inline c10::IValue to_value(const Tensor& x) {
  return x.defined() ? c10::IValue(x) : c10::IValue();
}
inline Tensor from_value(const c10::IValue& x) { return x.isNone() ? Tensor() : x.toTensor(); }
inline void from_value(const c10::IValue& from, double& to) { to = from.toDouble(); }
inline void from_value(const c10::IValue& from, bool& to) { to = from.toBool(); }
inline void from_value(const c10::IValue& from, std::string& to) { to = from.toStringRef(); }
inline void from_value(const c10::IValue& from, std::optional<double>& to) {
  to = from.isNone() ? std::nullopt : std::optional(from.toDouble());
}

template <class T> void push(Stack& stack, const T& of) {
  each_field(
      of, [&](const Tensor& x, const Field&) { stack.push_back(to_value(x)); },
      [&](const auto& x, const char*) { stack.emplace_back(x); });
}
// Reads a struct from `at` on, and moves `at` behind it.
template <class T> T pull(const c10::IValue*& at) {
  T out;
  each_field(
      out, [&](Tensor& x, const Field&) { x = from_value(*at++); },
      [&](auto& x, const char*) { from_value(*at++, x); });
  return out;
}

// A boxed function's own arguments are the last on the stack: others may lie below.
inline size_t arguments_of(const c10::OperatorHandle& op) { return op.schema().arguments().size(); }
inline const c10::IValue* first_argument(const c10::OperatorHandle& op, const Stack& stack) {
  return stack.data() + stack.size() - arguments_of(op);
}

// ------------------------------------------------------------------------ what torch knows of an
// op

struct Op {
  struct Input {
    bool tensor;
  };
  std::string name;
  std::vector<Input> inputs;  // tensors and settings, as they lie on the stack
  size_t bounds = SIZE_MAX;   // which tensor is cu_seqlens: it has no gradient
  std::vector<Field> results;
  std::string schema, forward_schema, backward_schema;

  std::optional<c10::OperatorHandle> forward, backward;
  void find();  // those two
};

// Pieces of schemas: "Tensor? state=None", "float? scale=None", "bool negative=False".
std::string argument(const Field& field, bool inner);
std::string argument(const char* name, double standard);
std::string argument(const char* name, bool standard);
std::string argument(const char* name, const std::string& standard);
std::string argument(const char* name, const std::optional<double>& standard);
void write_schemas(Op& op, const std::vector<std::string>& outer,
                   const std::vector<std::string>& inner);

template <class In> Op describe() {
  Op out;
  out.name = In::kName;
  std::vector<std::string> outer, inner;
  const In standard{};
  size_t tensors = 0;
  each_field(
      standard,
      [&](const Tensor&, const Field& field) {
        if (field.kind == Kind::kIndex) out.bounds = tensors;
        out.inputs.push_back({true}), ++tensors;
        // All that only few need is given by name.
        outer.push_back((field.kind == Kind::kIndex ? "*, " : "") + argument(field, false));
        inner.push_back(argument(field, true));
      },
      [&](const auto& x, const char* name) {
        out.inputs.push_back({false});
        outer.push_back(argument(name, x)), inner.push_back(argument(name, x));
      });
  const typename In::Result results{};
  each_tensor(results, [&](const Tensor&, const Field& field) { out.results.push_back(field); });
  write_schemas(out, outer, inner);
  return out;
}

template <class In> Op& op_of() {
  static Op op = [] {
    Op made = describe<In>();
    made.find();
    return made;
  }();
  return op;
}

void refuse_derivatives(torch::Library& m, const std::vector<std::string>& names);

// Inputs to results on the stack; with autograd where a gradient is wanted.
void run(const Op& op, Stack& stack, const Slots& inputs);
// The same without a gradient.
void run_below_autograd(const Op& op, Stack& stack);

template <class In> typename In::Result take_results(const In& in, const Stack& stack) {
  typename In::Result out;
  const c10::IValue* at = stack.data();
  const Slots given = slots(in);
  each_tensor(out, [&](Tensor& x, const Field& field) {
    x = from_value(*at++);
    for (const auto& slot : given)
      if (field.beside && slot.field.name == std::string_view(field.beside) && !slot.x->defined())
        x = Tensor();
  });
  return out;
}

template <class In> void check_inputs(const In& in, const Slots& given) {
  const SizesByLetter sizes(In::kName, given);
  check_types(In::kName, given);
  if constexpr (requires { in.check(); }) in.check();
}

// The op itself: what the C++ function of the op's name calls.
template <class In>
typename In::Result apply_op(const In& in, typename In::Result (*definition)(const In&)) {
  const Slots given = slots(in);
  check_inputs(in, given);
  for (const auto& slot : given)
    if (has_tangent(*slot.x)) {
      if constexpr (requires { in.cu_seqlens; })
        return by_definition(In::kName, definition, in, *main_slot(given).x);
      else
        return definition(in);
    }
  Stack stack;
  push(stack, in);
  run(op_of<In>(), stack, given);
  return take_results(in, stack);
}

// --------------------------------------------------------------------------------------- back ends

// Inputs as kernels read them: rows contiguous, what may be wide is, bounds of sequences checked
// and beside the rest. Again, for backward: what it does not read is a size without numbers.
template <class T> T prepared(const T& of, const Tensor& main, bool again = false) {
  T out = of;
  each_tensor(out, [&](Tensor& x, const Field& field) {
    if (!x.defined() || (again && field.unused)) return;
    if (field.kind == Kind::kIndex) {
      if constexpr (requires { T::kName; }) x = checked_offsets(T::kName, x, main);
    } else if (field.kind == Kind::kIo) {
      x = with_rows(x.to(main.scalar_type()));
    } else {
      x = x.to(wide_type(main)).contiguous();
    }
  });
  return out;
}

inline torch::TensorOptions options_of(const Tensor& main, Kind kind) {
  return kind == Kind::kIo ? main.options() : main.options().dtype(wide_type(main));
}

template <class In> typename In::Result empty_results(const In& in) {
  typename In::Result out;
  const Slots given = slots(in);
  SizesByLetter shapes(In::kName, given);
  if constexpr (requires { In::more_letters(shapes); }) In::more_letters(shapes);
  const Tensor& main = *main_slot(given).x;
  each_tensor(out, [&](Tensor& x, const Field& field) {
    for (const auto& slot : given)
      if (field.beside && slot.field.name == std::string_view(field.beside) && !slot.x->defined())
        return;
    x = at::empty_symint(shapes.sizes(field.shape), options_of(main, field.kind));
  });
  return out;
}

// Memory for the gradients of all inputs that are there and matter to a result with a gradient.
template <class In> In empty_gradients(const In& in, const typename In::Result& d) {
  In out;
  const auto to = tensors(out);
  size_t i = 0;
  const Slots given = slots(d);
  each_tensor(in, [&](const Tensor& x, const Field& field) {
    Tensor& grad = *to[i++];
    if (!x.defined() || field.kind == Kind::kIndex) return;
    for (const auto& slot : given)
      if (field.beside && slot.field.name == std::string_view(field.beside) && !slot.x->defined())
        return;
    grad = at::empty_symint(x.sym_sizes(), x.options());
  });
  return out;
}

inline c10::impl::ExcludeDispatchKeyGuard without_autocast() {
  return c10::impl::ExcludeDispatchKeyGuard(c10::autocast_dispatch_keyset);
}

template <class T> void push_all(Stack& stack, const T& of, const Tensor& like) {
  each_tensor(
      of, [&](const Tensor& x, const Field&) { stack.emplace_back(x.defined() ? x : none(like)); });
}

template <class B> constexpr bool prepares() {
  if constexpr (requires { B::kAsGiven; }) return false;
  return true;
}

template <class B, bool kMeta> void boxed_forward(const c10::OperatorHandle& op, Stack* stack) {
  using In = typename B::In;
  const auto no_autocast = without_autocast();
  const bool save = stack->back().toBool();
  const c10::IValue* at = first_argument(op, *stack);
  In in = pull<In>(at);
  const Tensor main = *main_slot(slots(in)).x;
  if constexpr (!kMeta && prepares<B>()) in = prepared(in, main);
  auto out = empty_results(in);
  std::vector<Tensor> kept;
  if (save) kept = B::keep(in);
  if constexpr (!kMeta) B::forward(in, out, kept);
  torch::jit::drop(*stack, arguments_of(op));
  push_all(*stack, out, main);
  stack->emplace_back(std::move(kept));
}

template <class B, bool kMeta> void boxed_backward(const c10::OperatorHandle& op, Stack* stack) {
  using In = typename B::In;
  using Result = typename In::Result;
  const auto no_autocast = without_autocast();
  const c10::IValue* at = first_argument(op, *stack);
  Result d, out;
  each_tensor(d, [&](Tensor& x, const Field&) { x = from_value(*at++); });
  each_tensor(out, [&](Tensor& x, const Field& field) {
    if (field.saved) x = from_value(*at++);
  });
  const In given = pull<In>(at);
  const std::vector<Tensor> kept = at->toTensorVector();
  const Tensor main = *main_slot(slots(given)).x;
  In in = given;
  if constexpr (!kMeta && prepares<B>()) in = prepared(in, main, true), d = prepared(d, main);
  In grads = empty_gradients(in, d);
  if constexpr (!kMeta) B::backward({in, out, d, kept}, grads);
  std::vector<Tensor> list;
  const Slots want = slots(given);
  size_t i = 0;
  each_tensor(grads, [&](const Tensor& x, const Field& field) {
    const Tensor& of = *want[i++].x;
    if (field.kind == Kind::kIndex) return;
    list.push_back(x.defined() ? x.to(of.scalar_type()) : none(main));
  });
  torch::jit::drop(*stack, arguments_of(op));
  stack->emplace_back(std::move(list));
}

// ----------------------------------------------------------------------------------- registrations

// For inputs with torch's autograd: `function` is the op's C++ function.
template <class In, typename In::Result (*function)(const In&)>
void boxed_op(const c10::OperatorHandle& op, Stack* stack) {
  const c10::IValue* at = first_argument(op, *stack);
  const In in = pull<In>(at);
  const auto out = function(in);
  torch::jit::drop(*stack, arguments_of(op));
  push_all(*stack, out, *main_slot(slots(in)).x);
}
template <class In> void boxed_below_autograd(const c10::OperatorHandle& op, Stack* stack) {
  const c10::IValue* at = first_argument(op, *stack);
  const In in = pull<In>(at);
  check_inputs(in, slots(in));
  Stack own(stack->end() - int64_t(arguments_of(op)), stack->end());
  run_below_autograd(op_of<In>(), own);
  torch::jit::drop(*stack, arguments_of(op));
  stack->insert(stack->end(), own.begin(), own.end());
}

// declare<In, function>(m) in a TORCH_LIBRARY_FRAGMENT(lrnn, m), once.
template <class In, typename In::Result (*function)(const In&)> void declare(torch::Library& m) {
  const Op op = describe<In>();
  for (const auto& schema : {op.schema, op.forward_schema, op.backward_schema})
    m.def(schema.c_str());
  const auto name = op.name;
  m.impl(name.c_str(),
         torch::dispatch(c10::DispatchKey::Autograd,
                         torch::CppFunction::makeFromBoxedFunction<&boxed_op<In, function>>()));
  m.impl(name.c_str(),
         torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd,
                         torch::CppFunction::makeFromBoxedFunction<&boxed_below_autograd<In>>()));
  refuse_derivatives(m, {name + "_forward", name + "_backward"});
}

template <class B, bool kMeta = false> void back_end(torch::Library& m, c10::DispatchKey device) {
  const std::string name = B::In::kName;
  m.impl((name + "_forward").c_str(),
         torch::dispatch(device,
                         torch::CppFunction::makeFromBoxedFunction<&boxed_forward<B, kMeta>>()));
  m.impl((name + "_backward").c_str(),
         torch::dispatch(device,
                         torch::CppFunction::makeFromBoxedFunction<&boxed_backward<B, kMeta>>()));
}
// On the CPU, and with it what shapes there are on the Meta device.
template <class B> void cpu_back_end(torch::Library& m) {
  back_end<B>(m, c10::DispatchKey::CPU);
  back_end<B, true>(m, c10::DispatchKey::Meta);
}

}  // namespace lrnn::ops
