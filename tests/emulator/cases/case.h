#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <vector>

// Small kernels for the emulator: some make one mistake that it must find, their twins do the same
// without it. None needs a GPU; on one, the mistakes are what they are, and nothing is promised.
namespace lrnn::emulator::cases {

struct Case {
  const char* name;
  const char* error;  // a pattern in what the emulator says as it ends the program; "": it does not
  bool (*run)();      // true if the results are right
};
using Cases = std::vector<Case>;
// By file.
Cases memory_cases();
Cases copy_cases();
Cases lane_cases();
Cases barrier_cases();
Cases integer_cases();
Cases float_cases();
Cases hopper_cases();
Cases race_cases();

inline void require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorName(error));
  std::exit(2);
}

// Memory of the device, and copies of it.
template <class T> class Array {
 public:
  explicit Array(size_t count) : count_(count) {
    require(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
  }
  explicit Array(const std::vector<T>& values) : Array(values.size()) {
    require(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyDefault), "to the GPU");
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { cudaFree(data_); }

  T* data() const { return data_; }
  // When all kernels have ended.
  std::vector<T> values() const {
    require(cudaGetLastError(), "launch");
    require(cudaDeviceSynchronize(), "kernel");
    std::vector<T> host(count_);
    require(cudaMemcpy(host.data(), data_, count_ * sizeof(T), cudaMemcpyDefault), "from the GPU");
    return host;
  }

 private:
  size_t count_;
  T* data_ = nullptr;
};

// 0, 1, 2, ..
template <class T = float> std::vector<T> counting(size_t count) {
  std::vector<T> x(count);
  for (size_t i = 0; i < count; ++i) x[i] = T(i);
  return x;
}

// Whole numbers that look random, the same in every run.
class Random {
 public:
  uint64_t operator()() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return state_ ^ state_ >> 29;
  }
  int below(int end) { return int((*this)() >> 33) % end; }

 private:
  uint64_t state_ = 1;
};

// Bit for bit; says where they differ first.
template <class T> bool same(const std::vector<T>& got, const std::vector<T>& wanted) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  const auto bits = [](T x) {
    Bits b = 0;
    __builtin_memcpy(&b, &x, sizeof x);
    return b;
  };
  for (size_t i = 0; i < wanted.size(); ++i)
    if (bits(got[i]) != bits(wanted[i])) {
      std::printf("value %zu: %.9g (%llx), not %.9g (%llx)\n", i, double(got[i]),
                  static_cast<unsigned long long>(bits(got[i])), double(wanted[i]),
                  static_cast<unsigned long long>(bits(wanted[i])));
      return false;
    }
  return got.size() == wanted.size();
}

}  // namespace lrnn::emulator::cases
