#pragma once
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/library.h>

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

// For the call of a backward op: when a graph of the gradient is asked for, the op has to see it,
// so that its own (missing) derivative is reported instead of being taken for zero.
template <class F> auto backward_call(F&& f) {
  if (at::GradMode::is_enabled()) return f();
  return below_autograd(f);
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
