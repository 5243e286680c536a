#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Allocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

// The half of LibTorch that knows CUDA, for a device whose memory is the host's: every op is
// LibTorch's own for the CPU.
namespace lrnn::emulator {

c10::Allocator* device_allocator();
c10::Allocator* pinned_allocator();

// Any op on CUDA tensors: runs it on CPU tensors over the same memory.
void on_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace lrnn::emulator
