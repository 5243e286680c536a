#include "tests/emulator/torch/views.h"

#include <ATen/core/List.h>

#include <cstring>

#include "tests/emulator/torch/torch.h"

namespace lrnn::emulator {
namespace {

// Where an op enlarges its CPU tensor: that memory is to become the CUDA tensor's.
class Shared final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    auto memory = device_allocator()->allocate(bytes);
    memory.unsafe_set_device(c10::kCPU);
    return memory;
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  static Shared* the() {
    static auto* const one = new Shared;
    return one;
  }
};

at::Tensor with_memory(const at::Tensor& like, at::Storage storage, c10::DispatchKey key) {
  auto impl = c10::make_intrusive<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key),
                                                   like.dtype());
  impl->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  at::Tensor result(std::move(impl));
  result._set_conj(like.is_conj());
  result._set_neg(like.is_neg());
  if (like.unsafeGetTensorImpl()->is_wrapped_number())  // it has no say in the result's type
    result.unsafeGetTensorImpl()->set_wrapped_number(true);
  return result;
}

bool same_shape(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.storage_offset() == b.storage_offset();
}

bool same(const at::Storage& a, const at::Storage& b) {
  return a.unsafeGetStorageImpl() == b.unsafeGetStorageImpl();
}

}  // namespace

Views::SharedMemory& Views::of_cuda(const at::Storage& storage) {
  for (auto& memory : memory_)
    if (same(memory.cuda, storage)) return memory;
  void* const begin = const_cast<void*>(storage.data());
  at::Storage cpu(at::Storage::use_byte_size_t(), storage.nbytes(),
                  c10::DataPtr(begin, c10::Device(c10::kCPU)), Shared::the(), true);
  memory_.push_back({storage, std::move(cpu), begin, storage.nbytes()});
  return memory_.back();
}

at::Tensor Views::to_cpu(const at::Tensor& x) {
  if (!x.defined()) return x;
  if (!x.is_cuda()) {
    if (x.dim() > 0) of_host_ = x;
    return x;
  }
  TORCH_CHECK(x.layout() == at::kStrided && x.has_storage() && !x.is_quantized(),
              "the emulator knows plain tensors alone, not ", x.toString());
  for (const auto& seen : tensors_)
    if (seen.cuda.is_same(x)) return seen.cpu;
  tensors_.push_back({x, with_memory(x, of_cuda(x.storage()).cpu, c10::DispatchKey::CPU)});
  return tensors_.back().cpu;
}

c10::IValue Views::to_cpu(const c10::IValue& value) {
  if (value.isTensor()) return to_cpu(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& x : value.toTensorList()) list.push_back(to_cpu(x));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& x : value.toOptionalTensorList())
      list.push_back(x ? std::optional(to_cpu(*x)) : std::nullopt);
    return list;
  }
  if (value.isStorage() && value.toStorage().device().is_cuda())
    return of_cuda(value.toStorage()).cpu;
  if (value.isDevice() && value.toDevice().is_cuda()) return c10::Device(c10::kCPU);
  return value;
}

at::Storage Views::to_cuda(const at::Storage& storage) {
  for (const auto& memory : memory_)
    if (same(memory.cpu, storage)) return memory.cuda;
  at::Storage made(at::Storage::use_byte_size_t(), storage.nbytes(),
                   device_allocator()->allocate(storage.nbytes()), device_allocator(), true);
  std::memcpy(made.mutable_data(), storage.data(), storage.nbytes());
  copied_.push_back({made.mutable_data(), storage});
  memory_.push_back({made, storage, made.mutable_data(), storage.nbytes()});
  return made;
}

at::Tensor Views::to_cuda(const at::Tensor& x) {
  if (!x.defined()) return x;
  for (const auto& seen : tensors_)
    if (seen.cpu.is_same(x)) return seen.cuda;
  TORCH_CHECK(x.device().is_cpu() && x.layout() == at::kStrided && x.has_storage(),
              "the emulator knows plain tensors alone, not ", x.toString());
  return with_memory(x, to_cuda(x.storage()), c10::DispatchKey::CUDA);
}

c10::IValue Views::to_cuda(const c10::IValue& value) {
  if (value.isTensor()) return to_cuda(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& x : value.toTensorList()) list.push_back(to_cuda(x));
    return list;
  }
  return value;
}

void Views::follow() {
  for (auto& memory : memory_) {
    if (memory.cpu.data() == memory.begin && memory.cpu.nbytes() == memory.bytes) continue;
    memory.bytes = memory.cpu.nbytes(), memory.begin = memory.cpu.mutable_data();
    auto owned = memory.cpu.set_data_ptr(c10::DataPtr(memory.begin, c10::Device(c10::kCPU)));
    owned.unsafe_set_device({c10::kCUDA, 0});
    memory.cuda.set_data_ptr_noswap(std::move(owned));
    memory.cuda.set_nbytes(memory.bytes);
  }
  for (const auto& [cuda, cpu] : tensors_) {
    const auto storage = to_cuda(cpu.storage());
    auto* const impl = cuda.unsafeGetTensorImpl();
    if (!same(storage, cuda.storage())) impl->set_storage_keep_dtype(storage);
    if (!same_shape(cuda, cpu))
      impl->set_sizes_and_strides(cpu.sizes(), cpu.strides(), cpu.storage_offset());
  }
}

}  // namespace lrnn::emulator
