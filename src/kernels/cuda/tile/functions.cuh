#pragma once
#include <cuda_runtime.h>

// The functions that gates are made of: few instructions for float, exact to a few roundings; the
// library's own for double.
namespace lrnn::kernels::cuda {

template <class R> constexpr R kLog2e = R(1.4426950408889634074);
template <class R> constexpr R kLn2 = R(0.6931471805599453094);

__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ double exp2_of(double x) { return exp2(x); }

__device__ __forceinline__ float fast_exp(float x) { return exp2_of(x * kLog2e<float>); }
__device__ __forceinline__ double fast_exp(double x) { return exp(x); }

__device__ __forceinline__ float divide(float x, float y) {
  float z;
  asm("div.approx.ftz.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
}
__device__ __forceinline__ double divide(double x, double y) { return x / y; }

template <class R> __device__ __forceinline__ R sigmoid(R x) {
  return divide(R(1), R(1) + fast_exp(-x));
}

// log(1 + w) for 0 <= w <= 1, as 2 artanh(w / (2 + w)): the logarithm instruction is too coarse
// near 1.
__device__ __forceinline__ float log_one_plus(float w) {
  const float s = divide(w, 2 + w), square = s * s;
  float series = 1.f / 15;
#pragma unroll
  for (int i = 6; i >= 0; --i) series = series * square + 1.f / float(2 * i + 1);
  return 2 * s * series;
}
__device__ __forceinline__ double log_one_plus(double w) { return log1p(w); }

// torch's, which is the identity above 20. Both sides are computed: a branch costs more.
template <class R> __device__ __forceinline__ R softplus(R x) {
  const R soft = (x > R(0) ? x : R(0)) + log_one_plus(fast_exp(x > R(0) ? -x : x));
  return x > R(20) ? x : soft;
}
template <class R> __device__ __forceinline__ R softplus_slope(R x) {
  return x > R(20) ? R(1) : sigmoid(x);
}

template <class R> __device__ __forceinline__ R log_sigmoid(R x) {
  return (x < R(0) ? x : R(0)) - log_one_plus(fast_exp(x < R(0) ? x : -x));
}

template <class R> __device__ __forceinline__ R silu(R x) { return x * sigmoid(x); }
template <class R> __device__ __forceinline__ R silu_slope(R x) {
  const R s = sigmoid(x);
  return s * (R(1) + x * (R(1) - s));
}

}  // namespace lrnn::kernels::cuda
