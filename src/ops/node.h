#pragma once
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/library.h>

#include <string_view>

#include "base/error.h"

// Autograd nodes written as torch's own generated ones are. For a tiny model the bookkeeping of
// torch::autograd::Function costs as much as the kernels.
namespace lrnn::ops {

using torch::Tensor;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

// Runs f on the kernels below autograd.
template <class F> auto below_autograd(F&& f) {
  at::AutoDispatchBelowADInplaceOrView guard;
  return f();
}

// Whether a tensor carries a tangent: forward-mode differentiation is under way (torch.func.jvp and
// jacfwd, dual numbers), which has nothing to do with requires_grad. Below autograd a tangent is
// lost without a word. So every op asks first, and leaves such inputs to its definition, whose
// tangent torch knows. Asking costs 5 to 30 ns a tensor.
inline bool has_tangent(const Tensor& x) {
  return x.defined() && x._fw_grad(/*level=*/0).defined();
}
inline bool has_tangent(at::TensorList xs) {
  for (const Tensor& x : xs)
    if (has_tangent(x)) return true;
  return false;
}
template <class... Inputs> bool any_tangent(const Inputs&... inputs) {
  return (has_tangent(inputs) || ...);
}

// Whether the gradient made of `grads` is itself to be differentiated, backward or forward.
inline bool differentiated_again(const variable_list& grads) {
  return at::GradMode::is_enabled() || has_tangent(grads);
}

// For the call of a backward op: when the gradient is to be differentiated, the op has to see it,
// so that its own (missing) derivative is reported instead of being taken for zero.
template <class F> auto backward_call(const variable_list& grads, F&& f) {
  if (differentiated_again(grads)) return f();
  return below_autograd(f);
}

// For a backward whose gradient is where derivatives end; `where` narrows the sentence down.
inline void check_last_derivative(std::string_view op, const variable_list& grads,
                                  std::string_view where = "") {
  check(!at::GradMode::is_enabled(), "[", op, "] has no second derivative", where,
        "; call backward without create_graph");
  check(!has_tangent(grads), "[", op, "] has no second derivative", where,
        ", so its gradient has no tangent (jvp)");
}

// A node connected to the inputs, or null when none of them wants a gradient.
template <class N, class... Inputs> std::shared_ptr<N> make_node(const Inputs&... inputs) {
  if (!torch::autograd::compute_requires_grad(inputs...)) return nullptr;
  std::shared_ptr<N> node(new N, torch::autograd::deleteNode);
  node->set_next_edges(torch::autograd::collect_next_edges(inputs...));
  return node;
}

// The typed handle of a registered op.
template <class Signature> auto find_op(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace lrnn::ops
