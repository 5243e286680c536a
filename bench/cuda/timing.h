#pragma once
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "ops/torch.h"

// How long work on the GPU takes and how much memory it needs, and what the GPU could do at best.
namespace lrnn::bench {

using Json = nlohmann::ordered_json;

class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {
    cudaEventCreate(&begin_), cudaEventCreate(&end_);
  }
  ~Stopwatch() { cudaEventDestroy(begin_), cudaEventDestroy(end_); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Median milliseconds, after five that do not count.
  template <class F> double median(F&& f, int repeats) {
    std::vector<float> all;
    for (int i = 0; i < repeats + 5; ++i) {
      cudaEventRecord(begin_, stream_);
      f();
      cudaEventRecord(end_, stream_);
      cudaEventSynchronize(end_);
      float ms = 0;
      cudaEventElapsedTime(&ms, begin_, end_);
      if (i >= 5) all.push_back(ms);
    }
    std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
    return all[all.size() / 2];
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t begin_{}, end_{};
};

// As called, the host's share included.
template <class F> double time_of(F&& f, int repeats = 30) {
  return Stopwatch(c10::cuda::getCurrentCUDAStream()).median(f, repeats);
}

// The same without the host: the work is recorded once and replayed.
template <class F> double graph_time_of(F&& f, int repeats = 30) {
  const auto stream = c10::cuda::getStreamFromPool();
  const c10::cuda::CUDAStreamGuard guard(stream);
  for (int i = 0; i < 3; ++i) f();
  at::cuda::CUDAGraph graph;
  graph.capture_begin();
  f();
  graph.capture_end();
  return Stopwatch(stream).median([&] { graph.replay(); }, repeats);
}

// The most memory that lives at once while f runs, `given` bytes of inputs included.
template <class F> double peak_mib(F&& f, double given) {
  namespace allocator = c10::cuda::CUDACachingAllocator;
  const auto bytes = [] {
    return allocator::getDeviceStats(c10::cuda::current_device()).allocated_bytes[0];
  };
  cudaDeviceSynchronize();
  allocator::resetPeakStats(c10::cuda::current_device());
  const double before = double(bytes().current);
  f();
  cudaDeviceSynchronize();
  return (double(bytes().peak) - before + given) / (1 << 20);
}

// Gives back what earlier work left in the allocator's hands: a recording cannot use it.
inline void forget() { c10::cuda::CUDACachingAllocator::emptyCache(); }

// What a pass must move and multiply, each counted once.
struct Cost {
  double bytes = 0, flops = 0;
};

// Measured here: copying a gigabyte, and a large product of bfloat16 matrices of random numbers.
struct Ceilings {
  double gb_per_s = 0, tflop_per_s = 0;

  static Ceilings measure() {
    const auto on = torch::TensorOptions(torch::kCUDA);
    Ceilings out;
    {
      const torch::Tensor a = torch::randn({1 << 29}, on), b = torch::empty_like(a);
      out.gb_per_s = 2 * double(a.nbytes()) / time_of([&] { torch::Tensor(b).copy_(a); }) / 1e6;
    }
    const int64_t n = 8192;
    const torch::Tensor x = torch::randn({n, n}, on).to(torch::kBFloat16), y = torch::empty_like(x);
    out.tflop_per_s = 2.0 * double(n) * n * n / time_of([&] {
                        torch::Tensor z = y;
                        at::mm_out(z, x, x);
                      }) /
                      1e9;
    return out;
  }

  Json json() const { return {{"copy_gb_per_s", gb_per_s}, {"product_tflop_per_s", tflop_per_s}}; }

  // The floor is what moving or multiplying alone would take, whichever is longer.
  Json rates(double ms, const Cost& cost) const {
    const double floor = std::max(cost.bytes / gb_per_s, cost.flops / tflop_per_s / 1e3) / 1e6;
    return {{"ms", ms},
            {"gb_per_s", cost.bytes / ms / 1e6},
            {"tflop_per_s", cost.flops / ms / 1e9},
            {"floor_ms", floor},
            {"of_floor", floor / ms}};
  }
};

inline void print(const Json& line) {
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

inline bool has_gpu() {
  if (at::globalContext().hasCUDA()) return true;
  std::puts("{\"skipped\": \"no GPU was found\"}");
  return false;
}

}  // namespace lrnn::bench
