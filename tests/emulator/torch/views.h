#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace lrnn::emulator {

// CUDA tensors as CPU tensors over the same memory, for one call of an op, and back. Tensors that
// share memory do so there, too, as ops look at that.
class Views {
 public:
  // The value as the CPU's op is to see it: tensors, lists of them, storages and devices.
  c10::IValue to_cpu(const c10::IValue& value);
  // What the op returned. Memory that is not of an argument is copied to the device.
  c10::IValue to_cuda(const c10::IValue& value);
  // Gives the arguments what the op did to their sizes or their memory (out=, resize_, set_).
  void follow();

  bool any_cuda() const { return !tensors_.empty(); }
  // A tensor of the host among those of the device, other than a single number.
  const at::Tensor& of_host() const { return of_host_; }

  struct Copied {
    void* to;
    const at::Storage from;
  };
  const std::vector<Copied>& copied() const { return copied_; }

 private:
  struct SharedMemory {
    at::Storage cuda, cpu;
    void* begin;
    size_t bytes;
  };
  struct Seen {
    at::Tensor cuda, cpu;
  };
  SharedMemory& of_cuda(const at::Storage& storage);
  at::Storage to_cuda(const at::Storage& storage);
  at::Tensor to_cpu(const at::Tensor& x);
  at::Tensor to_cuda(const at::Tensor& x);

  std::vector<SharedMemory> memory_;
  std::vector<Seen> tensors_;
  std::vector<Copied> copied_;
  at::Tensor of_host_;
};

}  // namespace lrnn::emulator
