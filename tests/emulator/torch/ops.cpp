#include <ATen/EmptyTensor.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "tests/emulator/torch/torch.h"

// Ops that are not the CPU's: those that make tensors, and those LibTorch runs by the device.
namespace lrnn::emulator {
namespace {

using at::Tensor;

constexpr c10::DispatchKeySet kCuda(c10::DispatchKey::CUDA);

void check_options(std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                   std::optional<bool> pinned) {
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "the emulator knows dense tensors");
  TORCH_CHECK(!device || !device->has_index() || device->index() == 0, "there is one device");
  TORCH_CHECK(!pinned.value_or(false), "Only dense CPU tensors can be pinned");
}

Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type,
             std::optional<c10::Layout> layout, std::optional<c10::Device> device,
             std::optional<bool> pinned, std::optional<at::MemoryFormat> format) {
  check_options(layout, device, pinned);
  return Tensor(at::detail::empty_generic(sizes, device_allocator(), kCuda,
                                          c10::dtype_or_default(type), format));
}

Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
                     std::optional<at::ScalarType> type, std::optional<c10::Layout> layout,
                     std::optional<c10::Device> device, std::optional<bool> pinned) {
  check_options(layout, device, pinned);
  return Tensor(at::detail::empty_strided_generic(sizes, strides, device_allocator(), kCuda,
                                                  c10::dtype_or_default(type)));
}

// Zeros without memory, which forward derivatives are made of.
Tensor zeros_without_memory(at::IntArrayRef sizes, std::optional<at::ScalarType> type,
                            std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                            std::optional<bool> pinned) {
  check_options(layout, device, pinned);
  static at::native::ZeroTensorAllocator nothing({c10::kCUDA, 0});
  return Tensor(at::detail::empty_generic(sizes, &nothing,
                                          kCuda | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor),
                                          c10::dtype_or_default(type), std::nullopt));
}

// Between host and device a copy waits unless told otherwise, which no recording may.
void copy(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 3);
  const bool one_side = arguments[0].toTensor().is_cuda() != arguments[1].toTensor().is_cuda();
  if (one_side && !arguments[2].toBool())
    C10_CUDA_CHECK(cudaStreamSynchronize(c10::cuda::getCurrentCUDAStream()));
  on_the_cpu(op, stack);
}

// Nobody waits for a stream here.
void record_stream(Tensor&, c10::Stream) {}

// Products whose result has a wider type than what goes in: of the wider type throughout, as the
// GPU's sums are. Both names of each, with the result and without.
void check_wider(const Tensor& x, at::ScalarType type) {
  const auto from = x.scalar_type();
  TORCH_CHECK(type == from || (type == at::kFloat && (from == at::kHalf || from == at::kBFloat16)),
              "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs");
}
template <auto product> Tensor wider(const Tensor& a, const Tensor& b, at::ScalarType type) {
  check_wider(a, type);
  return product(a.to(type), b.to(type));
}
template <auto product>
Tensor& wider_to(const Tensor& a, const Tensor& b, at::ScalarType type, Tensor& out) {
  check_wider(a, type);
  return product(out, a.to(type), b.to(type));
}
template <auto product>
Tensor wider_sum(const Tensor& x, const Tensor& a, const Tensor& b, at::ScalarType type,
                 const at::Scalar& beta, const at::Scalar& alpha) {
  check_wider(a, type);
  return product(x.to(type), a.to(type), b.to(type), beta, alpha);
}
template <auto product>
Tensor& wider_sum_to(const Tensor& x, const Tensor& a, const Tensor& b, at::ScalarType type,
                     const at::Scalar& beta, const at::Scalar& alpha, Tensor& out) {
  check_wider(a, type);
  return product(out, x.to(type), a.to(type), b.to(type), beta, alpha);
}
using Product = Tensor (*)(const Tensor&, const Tensor&);
using ProductTo = Tensor& (*)(Tensor&, const Tensor&, const Tensor&);
using Sum = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const at::Scalar&,
                       const at::Scalar&);
using SumTo = Tensor& (*)(Tensor&, const Tensor&, const Tensor&, const Tensor&, const at::Scalar&,
                          const at::Scalar&);

// The way that is made of products: the others are kernels of the GPU.
int64_t attention_of_products(const Tensor&, const Tensor&, const Tensor&,
                              const std::optional<Tensor>&, double, bool, std::optional<double>,
                              bool) {
  return 0;  // SDPBackend::math
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("_efficientzerotensor", zeros_without_memory);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("record_stream", record_stream);
  m.impl("copy_", torch::CppFunction::makeFromBoxedFunction<&copy>());
  m.impl("mm.dtype", wider<Product(at::mm)>);
  m.impl("mm.dtype_out", wider_to<ProductTo(at::mm_out)>);
  m.impl("bmm.dtype", wider<Product(at::bmm)>);
  m.impl("bmm.dtype_out", wider_to<ProductTo(at::bmm_out)>);
  m.impl("addmm.dtype", wider_sum<Sum(at::addmm)>);
  m.impl("addmm.dtype_out", wider_sum_to<SumTo(at::addmm_out)>);
  m.impl("baddbmm.dtype", wider_sum<Sum(at::baddbmm)>);
  m.impl("baddbmm.dtype_out", wider_sum_to<SumTo(at::baddbmm_out)>);
  // Whole on the CPU: taken apart they would ask for kernels of the GPU.
  for (const char* name : {"convolution", "convolution_backward", "convolution_overrideable"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
}

}  // namespace lrnn::emulator

namespace at::native {

REGISTER_CUDA_DISPATCH(_fused_sdp_choice_stub, &lrnn::emulator::attention_of_products)

}  // namespace at::native
