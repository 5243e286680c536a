#pragma once
#include <torch/csrc/autograd/function.h>
#include <torch/library.h>

#include "ops/again.h"
#include "ops/autocast.h"
#include "ops/back_end.h"
#include "ops/half.h"
#include "ops/node.h"
#include "ops/vmap.h"

// An op is declared once: by the struct of its inputs, whose `fields` lists tensors and settings in
// the order of its arguments, and by that of its results. From these follow
//
//   the schemas of NAME (what users call), NAME_forward and NAME_backward (what back ends have),
//   the checks of shapes, types and devices, with their sentences,
//   the shapes of results and gradients, and with them the kernels for torch's Meta device,
//   autograd: what is saved, unpacked, differentiated and refused,
//   types under autocast (ops/autocast.h), float16 (ops/half.h) and vmap (ops/vmap.h),
//   the registrations with torch's dispatcher.
//
// ops/back_end.h says what a back end is.
namespace lrnn::ops {

// ----------------------------------------------------------------------------------------- schemas

// Pieces of schemas: "Tensor? state=None", "float? scale=None", "bool negative=False".
std::string argument(const Field& field, bool inner);
std::string argument(const char* name, double standard);
std::string argument(const char* name, bool standard);
std::string argument(const char* name, const std::string& standard);
std::string argument(const char* name, const std::optional<double>& standard);

struct Schemas {
  std::string op, forward, backward;
};
Schemas write_schemas(const char* name, const std::vector<std::string>& outer,
                      const std::vector<std::string>& inner, const std::vector<Field>& results);

template <class In> Schemas schemas_of() {
  std::vector<std::string> outer, inner;
  const In standard{};
  each_field(
      standard,
      [&](const Tensor&, const Field& field) {
        outer.push_back((field.by_name ? "*, " : "") + argument(field, false));
        inner.push_back(argument(field, true));
      },
      [&](const auto& x, const char* name) {
        outer.push_back(argument(name, x)), inner.push_back(argument(name, x));
      });
  std::vector<Field> results;
  const typename In::Result none{};
  each_tensor(none, [&](const Tensor&, const Field& field) { results.push_back(field); });
  return write_schemas(In::kName, outer, inner, results);
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

// ----------------------------------------------------------------------------------- registrations

// For inputs with torch's autograd: `function` is the op's C++ function.
template <class In, typename In::Result (*function)(const In&)>
void boxed_op(const c10::OperatorHandle& op, Stack* stack) {
  const c10::IValue* at = first_argument(op, *stack);
  const In in = pull<In>(at);
  const auto out = function(in);
  torch::jit::drop(*stack, arguments_of(op));
  push_results(*stack, out, main_of(in));
}
template <class In> void boxed_below_autograd(const c10::OperatorHandle& op, Stack* stack) {
  const c10::IValue* at = first_argument(op, *stack);
  const In in = pull<In>(at);
  const In read = is_half(in) ? from_half(in) : in;
  check_inputs(read);
  const auto out = is_half(in) ? to_half(call_forward(read)) : call_forward(read);
  torch::jit::drop(*stack, arguments_of(op));
  push_results(*stack, out, main_of(in));
}

void refuse_derivatives(torch::Library& m, const std::vector<std::string>& names);

// declare<In, function>(m) in a TORCH_LIBRARY_FRAGMENT(lrnn, m), once.
template <class In, typename In::Result (*function)(const In&)> void declare(torch::Library& m) {
  const Schemas schemas = schemas_of<In>();
  for (const auto& schema : {schemas.op, schemas.forward, schemas.backward}) m.def(schema.c_str());
  const std::string name = In::kName;
  m.impl(name.c_str(),
         torch::dispatch(c10::DispatchKey::Autograd,
                         torch::CppFunction::makeFromBoxedFunction<&boxed_op<In, function>>()));
  m.impl(name.c_str(),
         torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd,
                         torch::CppFunction::makeFromBoxedFunction<&boxed_below_autograd<In>>()));
  m.impl(
      name.c_str(),
      torch::dispatch(c10::DispatchKey::AutocastCPU,
                      torch::CppFunction::makeFromBoxedFunction<&boxed_autocast<In, c10::kCPU>>()));
  m.impl(name.c_str(),
         torch::dispatch(
             c10::DispatchKey::AutocastCUDA,
             torch::CppFunction::makeFromBoxedFunction<&boxed_autocast<In, c10::kCUDA>>()));
  constexpr auto kVmap = c10::DispatchKey::FuncTorchBatched;
  m.impl(
      name.c_str(),
      torch::dispatch(kVmap, torch::CppFunction::makeFromBoxedFunction<&boxed_vmap<In, false>>()));
  m.impl(
      (name + "_forward").c_str(),
      torch::dispatch(kVmap, torch::CppFunction::makeFromBoxedFunction<&boxed_vmap<In, true>>()));
  m.impl((name + "_backward").c_str(),
         torch::dispatch(kVmap,
                         torch::CppFunction::makeFromBoxedFunction<&boxed_vmap_backward<In>>()));
  refuse_derivatives(m, {name + "_forward", name + "_backward"});
}

}  // namespace lrnn::ops
