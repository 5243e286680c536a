#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "base/error.h"
#include "kernels/cuda/chip.h"
#include "kernels/delta_product.h"

// What every kernel here shares: elements by run-time type, and how sequences are cut into chunks.
namespace lrnn::kernels::cuda {

inline void check_launch(const char* what) {
  const cudaError_t status = cudaGetLastError();
  check(status == cudaSuccess, "[", what,
        "] the GPU refused the kernel: ", cudaGetErrorString(status));
}

constexpr int kMostShared = 227 * 1024;  // bytes a block may have on Hopper

template <class Kernel> void allow_shared(Kernel* kernel, size_t bytes) {
  if (bytes <= 48 * 1024) return;
  // Whoever chose the kernel has asked. Said here, too, so that it shows where a test asks for the
  // kernels of a lesser chip.
  check(bytes <= size_t(chip().shared), "[lrnn] a kernel wants ", bytes / 1024,
        " KB of shared memory for a block, and this GPU has ", chip().shared / 1024);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes));
}

// The type is the same for all threads, so the branch costs nothing beside the load.
template <class R> __device__ __forceinline__ R load_as(Type type, const void* data, int64_t at) {
  if (type == Type::kBFloat16) {
    const uint32_t bits = static_cast<const uint16_t*>(data)[at];
    return R(__uint_as_float(bits << 16));
  }
  if (type == Type::kFloat32) return R(static_cast<const float*>(data)[at]);
  return R(static_cast<const double*>(data)[at]);
}

__device__ __forceinline__ uint16_t to_bf16(float x) {  // to nearest, ties to even; NaN stays NaN
  const uint32_t bits = __float_as_uint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return uint16_t((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

template <class R>
__device__ __forceinline__ void store_as(Type type, void* data, int64_t at, R x) {
  if (type == Type::kBFloat16)
    static_cast<uint16_t*>(data)[at] = to_bf16(float(x));
  else if (type == Type::kFloat32)
    static_cast<float*>(data)[at] = float(x);
  else
    static_cast<double*>(data)[at] = double(x);
}

__device__ __forceinline__ float exp_of(float x) { return expf(x); }
__device__ __forceinline__ double exp_of(double x) { return exp(x); }

// One sequence: row `b` of the tensors, tokens t0 .. t0+length-1.
struct Span {
  int64_t b, t0, length;
};

// Wrong offsets give wrong numbers, never a wrong address.
template <class Inputs> __device__ __forceinline__ Span span_of(const Inputs& p, int64_t s) {
  if (!p.cu_seqlens) return {s, 0, p.T};
  const int64_t begin = min(max(p.cu_seqlens[s], int64_t(0)), p.T);
  const int64_t end = min(max(p.cu_seqlens[s + 1], begin), p.T);
  return {0, begin, end - begin};
}

// A sequence is a run of micro-steps m = token N + j, cut every `chunk` of them. Chunks of all
// sequences are numbered through; packed sequences leave a few numbers unused, so that nobody has
// to read cu_seqlens on the host.
__host__ __device__ inline int64_t chunk_slots(const DeltaProductInputs& p, int64_t chunk) {
  if (p.cu_seqlens) return p.T * p.N / chunk + p.S;
  return p.B * ((p.T * p.N + chunk - 1) / chunk);
}

__device__ __forceinline__ int64_t first_slot(const DeltaProductInputs& p, int64_t s,
                                              int64_t chunk) {
  if (!p.cu_seqlens) return s * ((p.T * p.N + chunk - 1) / chunk);
  return min(max(p.cu_seqlens[s], int64_t(0)), p.T) * p.N / chunk + s;
}

struct Slot {
  int64_t s;      // the sequence
  int64_t first;  // its micro-step where the chunk begins
  int count;      // micro-steps in the chunk; 0: the slot is not used
};

__device__ inline Slot slot_of(const DeltaProductInputs& p, int64_t slot, int64_t chunk) {
  int64_t s = 0;
  if (!p.cu_seqlens) {
    s = uint32_t(slot) / uint32_t((p.T * p.N + chunk - 1) / chunk);
  } else {
    int64_t end = p.S;  // the last sequence whose first slot is not beyond this one
    while (end - s > 1) {
      const int64_t middle = (s + end) / 2;
      (first_slot(p, middle, chunk) <= slot ? s : end) = middle;
    }
  }
  const int64_t first = (slot - first_slot(p, s, chunk)) * chunk;
  const int64_t left = span_of(p, s).length * p.N - first;
  return {s, first, left <= 0 ? 0 : int(min(left, chunk))};
}

// The same for a type known when compiling, free of branches: loads in a branch wait for each
// other.
struct Bf16 {
  uint16_t bits;
};
template <class R, class Io> __device__ __forceinline__ R load(const void* data, int64_t at) {
  return R(static_cast<const Io*>(data)[at]);
}
template <> __device__ __forceinline__ float load<float, Bf16>(const void* data, int64_t at) {
  return __uint_as_float(uint32_t(static_cast<const Bf16*>(data)[at].bits) << 16);
}

// Four values at once; `from` lies on 16 bytes.
__device__ __forceinline__ void load_four(const float* from, float (&x)[4]) {
  const float4 v = *reinterpret_cast<const float4*>(from);
  x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
}
__device__ __forceinline__ void load_four(const double* from, double (&x)[4]) {
  const double2 v = *reinterpret_cast<const double2*>(from),
                w = *reinterpret_cast<const double2*>(from + 2);
  x[0] = v.x, x[1] = v.y, x[2] = w.x, x[3] = w.y;
}

// Calls to(i, from(i)) for this thread's i < n, eight loads on their way at a time.
template <class R, class From, class To>
__device__ __forceinline__ void copy_each(int n, From&& from, To&& to) {
  constexpr int kAtOnce = 8;
  for (int first = threadIdx.x; first < n; first += kAtOnce * blockDim.x) {
    R x[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      x[u] = from(min(first + u * int(blockDim.x), n - 1));
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int i = first + u * blockDim.x;
      if (i < n) to(i, x[u]);
    }
  }
}

// Offset of a row of [batch, token, step, head, :].
__device__ __forceinline__ int64_t row_at(const Rows& x, int64_t b, int64_t t, int64_t j,
                                          int64_t h) {
  return b * x.batch + t * x.token + j * x.step + h * x.head;
}
__device__ __forceinline__ int64_t row_at(const SharedRows& x, int64_t b, int64_t t, int64_t j,
                                          int64_t h) {
  const int64_t head = __umulhi(2 * uint32_t(h) + 1, x.inverse);
  return b * x.batch + t * x.token + j * x.step + head * x.head;
}

template <int Lanes, class R> __device__ __forceinline__ R sum_lanes(R x) {
#pragma unroll
  for (int d = 1; d < Lanes; d *= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
  return x;
}

}  // namespace lrnn::kernels::cuda
