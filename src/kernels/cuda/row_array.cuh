#pragma once
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/pointwise.h"

namespace lrnn::kernels::cuda {

inline bool on_packs(const RowArray& x, Type type) {
  return lies_on_packs({x.data, x.outer, x.stride, 0, 0}, type);
}

__device__ __forceinline__ int64_t begin_of(const RowArray& x, int64_t row) {
  if (x.per == 0) return row * x.stride;
  const int64_t group = row / x.per;
  return group * x.outer + (row - group * x.per) * x.stride;
}

}  // namespace lrnn::kernels::cuda
