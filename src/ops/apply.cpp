#include "ops/apply.h"

#include <ATen/record_function.h>

#include <map>

#include "ops/gpu.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

c10::OperatorHandle inner_op(const char* name, const char* which) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(cat("lrnn::", name, which).c_str(), "");
}

using Key = c10::DispatchKey;

bool within(c10::DispatchKeySet keys, c10::DispatchKeySet allowed) {
  return (keys.raw_repr() & ~allowed.raw_repr()) == 0;
}

// Of a gradient, whose own is not written.
struct Refusal final : torch::autograd::Node {
  const char* op = "";
  variable_list apply(variable_list&&) override {
    throw Error(cat("[", op, "] has no second derivative"));
  }
};

}  // namespace

Functions& functions(const char* op, c10::DeviceType device) {
  static std::map<std::pair<std::string, c10::DeviceType>, Functions> all;
  return all[{op, device}];
}

InnerOps::InnerOps(const char* name)
    : name(name),
      forward(inner_op(name, "_forward")),
      backward(inner_op(name, "_backward")),
      cpu(functions(name, c10::kCPU)),
      cuda(functions(name, c10::kCUDA)) {}

const Functions* InnerOps::direct(c10::DispatchKeySet keys, c10::DeviceType device) const {
  static const c10::DispatchKeySet plain{
      Key::CPU,         Key::CUDA,         Key::AutogradCPU,    Key::AutogradCUDA,
      Key::AutocastCPU, Key::AutocastCUDA, Key::ADInplaceOrView};
  static const c10::DispatchKeySet usual = plain | c10::DispatchKeySet(Key::BackendSelect);
  const Functions& found = device == c10::kCUDA ? cuda : cpu;
  const bool unseen = within(keys, plain) &&
                      within(c10::impl::tls_local_dispatch_key_set().included_, usual) &&
                      !at::hasCallbacks();
  return unseen && found.forward ? &found : nullptr;
}

void InnerOps::call(const c10::OperatorHandle& which, const torch::Device& device,
                    Stack& stack) const {
  with_kernels(name, device, [&] { which.callBoxed(stack); });
}

void require_kernels(const char* op, const torch::Device& device) {
  const std::string sentence = cat("[", op, "] there is no kernel for ", device);
  if (!device.is_cuda() || gpu()) throw Error(sentence);
  if (const auto why = load_gpu(); !why.empty()) throw Error(sentence + ": " + why);
}

bool wants_gradient(c10::ArrayRef<Slot> inputs) {
  if (!at::GradMode::is_enabled()) return false;
  for (const auto& slot : inputs)
    if (slot.field.kind != Kind::kIndex && slot.x->defined() && slot.x->requires_grad())
      return true;
  return false;
}

torch::autograd::edge_list edges_of(c10::ArrayRef<Slot> inputs) {
  torch::autograd::edge_list out;
  out.reserve(inputs.size());
  for (const auto& slot : inputs) {
    if (slot.field.kind == Kind::kIndex) continue;
    if (slot.x->defined())
      out.push_back(torch::autograd::impl::gradient_edge(*slot.x));
    else
      out.emplace_back();
  }
  return out;
}

void refuse_next_derivative(const char* op, const variable_list& from, const variable_list& grads) {
  if (!torch::autograd::any_variable_requires_grad(from)) return;
  const std::shared_ptr<Refusal> refusal(new Refusal, torch::autograd::deleteNode);
  refusal->op = op;
  refusal->set_next_edges(torch::autograd::collect_next_edges(from));
  for (const Tensor& x : grads)
    if (x.defined()) torch::autograd::set_history(x, refusal);
}

Tensor size_alone(const Tensor& x) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  return at::empty({}, x.options()).expand_symint(x.sym_sizes());
}

}  // namespace lrnn::ops
