#include "ops/declare.h"

#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>

#include "ops/torch.h"

namespace lrnn::ops {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

// op.callBoxed(stack), with an error that names the device where nobody registered a kernel.
void call(const Op& op, const c10::OperatorHandle& which, const torch::Device& device,
          Stack& stack) {
  try {
    which.callBoxed(stack);
  } catch (const c10::NotImplementedError&) {  // it lists every back end torch knows
    throw Error(cat("[", op.name, "] there is no kernel for ", device),
                "On a GPU, load liblrnn_cuda.so first.");
  }
}

torch::Device device_in(const Stack& stack) {
  for (const auto& value : stack)
    if (value.isTensor()) return value.toTensor().device();
  return torch::kCPU;
}

// One node for every op: it keeps what was on the stack, and lays it there again for backward.
struct OpNode final : torch::autograd::Node {
  const Op* op = nullptr;
  Stack settings;                     // of the inputs, in order; tensors are saved apart
  std::vector<SavedVariable> inputs;  // tensors, in order
  std::vector<SavedVariable> results, kept;

  std::string name() const override { return op->name + "_backward"; }
  void release_variables() override {
    for (auto* list : {&inputs, &results, &kept})
      for (auto& saved : *list) saved.reset_data();
  }
  variable_list apply(variable_list&& grads) override {
    check_last_derivative(op->name, grads);
    std::lock_guard<std::mutex> lock(mutex_);
    Stack stack;
    for (const auto& grad : grads) stack.push_back(to_value(grad));
    for (auto& saved : results) stack.push_back(to_value(saved.unpack(shared_from_this())));
    std::vector<Tensor> given;
    size_t setting = 0;
    for (const auto& input : op->inputs) {
      if (input.tensor) given.push_back(inputs[given.size()].unpack());
      stack.push_back(input.tensor ? to_value(given.back()) : settings[setting++]);
    }
    std::vector<Tensor> list;
    for (auto& saved : kept) list.push_back(saved.unpack());
    stack.emplace_back(std::move(list));
    below_autograd([&] { call(*op, *op->backward, device_in(stack), stack); });
    auto out = stack[0].toTensorVector();
    // A gradient that nobody made is empty, and for torch undefined.
    size_t grad = 0;
    for (size_t i = 0; i < given.size(); ++i) {
      if (i == op->bounds) continue;
      if (!given[i].defined() || out[grad].sym_sizes() != given[i].sym_sizes())
        out[grad] = Tensor();
      ++grad;
    }
    return out;
  }
};

// As large as x, and one number in memory.
Tensor size_alone(const Tensor& x) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  return at::empty({}, x.options()).expand_symint(x.sym_sizes());
}

std::shared_ptr<OpNode> node_for(const Op& op, const Stack& stack, const Slots& inputs) {
  std::vector<Tensor> differentiable;
  for (const auto& slot : inputs)
    if (slot.field.kind != Kind::kIndex) differentiable.push_back(*slot.x);
  const auto node = make_node<OpNode>(differentiable);
  if (!node) return node;
  node->op = &op;
  for (const auto& slot : inputs)
    node->inputs.emplace_back(slot.field.unused ? size_alone(*slot.x) : *slot.x, false);
  for (size_t i = 0; i < op.inputs.size(); ++i)
    if (!op.inputs[i].tensor) node->settings.push_back(stack[i]);
  return node;
}

}  // namespace

std::string argument(const Field& field, bool inner) {
  const bool needed = field.need <= Need::kNeeded || (field.need == Need::kForOutputs && !inner);
  return cat("Tensor", needed ? " " : "? ", field.name, needed || inner ? "" : "=None");
}
std::string argument(const char* name, double standard) {
  return cat("float ", name, "=", standard);
}
std::string argument(const char* name, bool standard) {
  return cat("bool ", name, "=", standard ? "True" : "False");
}
std::string argument(const char* name, const std::string& standard) {
  return cat("str ", name, "=\"", standard, "\"");
}
std::string argument(const char* name, const std::optional<double>&) {
  return cat("float? ", name, "=None");
}

void write_schemas(Op& op, const std::vector<std::string>& outer,
                   const std::vector<std::string>& inner) {
  std::vector<std::string> results, before;
  for (const auto& field : op.results) {
    results.push_back(cat("Tensor ", field.name));
    before.push_back(cat("Tensor? d_", field.name));
  }
  for (const auto& field : op.results)
    if (field.saved) before.push_back(cat("Tensor final_", field.name));
  // In the inner ops nothing has a default: they are called with all there is.
  std::vector<std::string> plain;
  for (const auto& one : inner) plain.push_back(one.substr(0, one.find('=')));
  const auto all = joined(results);
  op.schema = cat(op.name, "(", joined(outer), ") -> ",
                  results.size() == 1 ? "Tensor" : cat("(", all, ")"));
  op.forward_schema =
      cat(op.name, "_forward(", joined(plain), ", bool save) -> (", all, ", Tensor[] kept)");
  op.backward_schema = cat(op.name, "_backward(", joined(before), ", ", joined(plain),
                           ", Tensor[] kept) -> Tensor[]");
}

void Op::find() {
  auto& dispatcher = c10::Dispatcher::singleton();
  forward = dispatcher.findSchemaOrThrow(("lrnn::" + name + "_forward").c_str(), "");
  backward = dispatcher.findSchemaOrThrow(("lrnn::" + name + "_backward").c_str(), "");
}

void run_below_autograd(const Op& op, Stack& stack) {
  stack.emplace_back(false);
  call(op, *op.forward, device_in(stack), stack);
  stack.resize(op.results.size());  // nothing was kept
}

void run(const Op& op, Stack& stack, const Slots& inputs) {
  const auto node = node_for(op, stack, inputs);
  std::vector<Tensor> kept;
  below_autograd([&] {
    if (!node) return run_below_autograd(op, stack);
    stack.emplace_back(true);
    call(op, *op.forward, device_in(stack), stack);
    kept = stack.back().toTensorVector();
    stack.resize(op.results.size());
  });
  if (!node) return;
  for (size_t i = 0; i < op.results.size(); ++i) {
    Tensor out = stack[i].toTensor();
    torch::autograd::set_history(out, node);
    if (op.results[i].saved) node->results.emplace_back(out, true);
  }
  for (const auto& x : kept) node->kept.emplace_back(x, false);
}

// What stands between an op and its back ends is called below autograd and has no derivative. Who
// calls it by its name and asks for one, backward or forward, is told so; torch would take it for
// zero.
void refuse_derivatives(torch::Library& m, const std::vector<std::string>& names) {
  for (const auto& name : names)
    m.impl(name.c_str(), torch::dispatch(c10::DispatchKey::Autograd,
                                         torch::autograd::autogradNotImplementedFallback()));
}

}  // namespace lrnn::ops
