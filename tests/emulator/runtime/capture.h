#pragma once
#include <cuda_runtime_api.h>

#include <functional>

// Capture of a stream. What is captured also runs at once: only with true numbers does what comes
// after it (sizes, indices) make sense. The end of the capture puts the memory back as it was, as
// if nothing had run.
namespace lrnn::emulator {

using Work = std::function<void()>;

bool capturing(cudaStream_t stream);
// Of a stream that captures: what a replay does again.
void record(cudaStream_t stream, Work again);

// Held by all that reads or writes the device's memory. Work that is captured has it alone: what
// changes meanwhile in the allocations it may write to is its doing, and is undone later.
class Turn {
 public:
  explicit Turn(cudaStream_t stream);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool captured() const { return captured_; }
  // Of captured work: it may write to the allocation at this address.
  void may_write(const void* address);

 private:
  cudaStream_t stream_;
  bool inner_, captured_;  // inner: this thread has a turn already
};

}  // namespace lrnn::emulator
