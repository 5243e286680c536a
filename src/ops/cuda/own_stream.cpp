#include "ops/cuda/gpu.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <mutex>
#include <vector>

namespace lrnn::ops::cuda {
namespace {

// Streams that nobody has. They are lent again rather than destroyed: the allocator keeps memory
// for each of them, and so does cuBLAS.
class Idle {
 public:
  // Never destroyed: a thread may outlive main.
  static Idle& the() {
    static auto* const one = new Idle;
    return *one;
  }
  cudaStream_t take(c10::DeviceIndex device) {
    {
      const std::lock_guard lock(mutex_);
      if (auto& idle = streams_[device]; !idle.empty()) {
        const auto stream = idle.back();
        idle.pop_back();
        return stream;
      }
    }
    cudaStream_t stream = nullptr;
    C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
  }
  void give(c10::DeviceIndex device, cudaStream_t stream) {
    const std::lock_guard lock(mutex_);
    streams_[device].push_back(stream);
  }

 private:
  std::mutex mutex_;
  std::map<c10::DeviceIndex, std::vector<cudaStream_t>> streams_;
};

// What is still under way on a stream that is given back comes before what its next owner does.
struct Lease {
  c10::DeviceIndex device = c10::cuda::current_device();
  cudaStream_t stream = Idle::the().take(device);
  Lease() = default;
  ~Lease() { Idle::the().give(device, stream); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
};

struct OwnStream {
  Lease lease;
  c10::cuda::CUDAStreamGuard guard{c10::cuda::getStreamFromExternal(lease.stream, lease.device)};
};

}  // namespace

std::shared_ptr<void> own_stream() { return std::make_shared<OwnStream>(); }

}  // namespace lrnn::ops::cuda
