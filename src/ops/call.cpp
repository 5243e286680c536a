#include "ops/call.h"

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

}  // namespace lrnn::ops
