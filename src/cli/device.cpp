#include "cli/device.h"

#include "base/error.h"
#include "ops/gpu.h"
#include "ops/torch.h"

namespace lrnn::cli {

std::shared_ptr<std::string> add_device(CLI::App& app) {
  auto device = std::make_shared<std::string>("cpu");
  app.add_option("--device", *device, "cpu or cuda (default: cpu)")->type_name("NAME");
  return device;
}

std::string why_no_cuda() {
  // Before LibTorch is asked about CUDA: the plug-in brings LibTorch's own CUDA half with it.
  if (const auto why = ops::load_gpu(); !why.empty()) return why;
  return at::globalContext().hasCUDA() ? "" : "no CUDA device was found";
}

void require_device(const std::string& device) {
  if (device == "cpu") return;
  check(device == "cuda", "--device must be cpu or cuda, got '", device, "'");
  if (const auto why = why_no_cuda(); !why.empty()) throw Error(why, "use --device cpu");
  // Backward runs in a thread of LibTorch's that meets CUDA at its first kernel. Were that a matrix
  // product, LibTorch would warn of a missing context; so let it be this one.
  const auto one = torch::ones({}, torch::device(torch::kCUDA).requires_grad(true));
  (one * one).backward();
}

std::shared_ptr<void> use_device(const std::string& device) {
  require_device(device);
  return device == "cpu" ? nullptr : ops::gpu()->own_stream();
}

}  // namespace lrnn::cli
