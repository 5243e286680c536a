#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <optional>

// What the pieces of the CUDA runtime here share.
namespace lrnn::emulator {

// The device looks like an H200; kernels choose their shapes by these numbers.
constexpr int kMultiprocessors = 132, kWarp = 32, kMostThreads = 1024;
constexpr int kThreadsOfMultiprocessor = 2048, kBlocksOfMultiprocessor = 32;
constexpr int kRegisters = 65536;           // of a multiprocessor, and what a block may have
constexpr size_t kShared = 48 * 1024;       // a block's, without asking
constexpr size_t kMostShared = 227 * 1024;  // a block's, with cudaFuncSetAttribute
constexpr size_t kReservedShared = 1024;    // the driver's, in every block
constexpr size_t kSharedOfMultiprocessor = 228 * 1024;
constexpr int kMajor = 9, kMinor = 0;
constexpr int kVersion = CUDART_VERSION;

// Remembers an error for cudaGetLastError, and is it.
cudaError_t answer(cudaError_t error);

// Memory as the runtime lent it.
struct Allocation {
  char* begin = nullptr;
  size_t bytes = 0;
  bool host = false;  // cudaHostAlloc
};
std::optional<Allocation> allocation_of(const void* address);
// Nothing is lent or given back while `work` has the allocation at this address, if there is one.
void with_allocation(const void* address, const std::function<void(const Allocation&)>& work);

// What waits for a stream that captures fails, and the capture with it.
cudaError_t refuse_while_capturing(cudaStream_t stream);

}  // namespace lrnn::emulator
