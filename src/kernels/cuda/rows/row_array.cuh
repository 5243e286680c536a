#pragma once
#include "kernels/cuda/rows/rows.h"
#include "kernels/cuda/tile/pack.cuh"

// Rows of a RowArray and sums over the lanes that share one.
namespace lrnn::kernels::cuda {

inline bool on_packs(const RowArray& x, Type type) {
  return lies_on_packs({x.data, x.outer, x.stride, 0, 0}, type);
}

__device__ __forceinline__ int64_t begin_of(const RowArray& x, int64_t row) {
  if (x.per == 0) return row * x.stride;
  const int64_t group = row / x.per;
  return group * x.outer + (row - group * x.per) * x.stride;
}

// The neighbouring threads that share a row of D values: one for each pack, at most a warp.
inline int lanes_of(int64_t D) {
  int lanes = 1;
  while (lanes < 32 && lanes * kPack < D) lanes *= 2;
  return lanes;
}

template <class R> __device__ __forceinline__ R sum_of_lanes(R x, int lanes) {
  for (int d = 1; d < lanes; d *= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
  return x;
}

__device__ __forceinline__ float inverse_root(float x) { return rsqrtf(x); }
__device__ __forceinline__ double inverse_root(double x) { return rsqrt(x); }

}  // namespace lrnn::kernels::cuda
