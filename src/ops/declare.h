#pragma once
#include <torch/library.h>

#include "ops/autocast.h"
#include "ops/back_end.h"
#include "ops/vmap.h"

// An op is declared once: by the struct of its inputs, whose `fields` lists tensors and settings in
// the order of its arguments, and by that of its results. From these follow
//
//   the schemas of NAME (what users call), NAME_forward and NAME_backward (what back ends have),
//   the checks of shapes, types and devices, with their sentences,
//   the shapes of results and gradients, and with them the kernels for torch's Meta device,
//   autograd: what is saved, unpacked, differentiated and refused (ops/apply.h),
//   types under autocast (ops/autocast.h), float16 (ops/half.h) and vmap (ops/vmap.h),
//   the registrations with torch's dispatcher.
//
// ops/apply.h is what a call does, ops/back_end.h says what a back end is.
namespace lrnn::ops {

// ----------------------------------------------------------------------------------------- schemas

// Pieces of schemas: "Tensor? state=None", "float? scale=None", "bool negative=False".
std::string argument(const Field& field, bool inner);
std::string argument(const char* name, double standard);
std::string argument(const char* name, bool standard);
std::string argument(const char* name, int64_t standard);
std::string argument(const char* name, const std::string& standard);
std::string argument(const char* name, const std::optional<double>& standard);
std::string argument(const char* name, const std::optional<c10::ScalarType>& standard);

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
