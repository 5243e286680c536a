#pragma once
#include "kernels/cuda/tile/common.cuh"

// The inverse of a unit lower triangular matrix of 16 rows, as the WY form of a chunk needs it.
namespace lrnn::kernels::cuda {

// T holds L, strictly lower, and becomes (I + L)^-1 by forward substitution, a column a lane: one
// warp's work. Between two __syncwarp's of the caller.
__device__ __forceinline__ void invert_unit_lower(float (&T)[16][20], int lane) {
  float x[16];
#pragma unroll
  for (int r = 0; r < 16; ++r) {
    x[r] = r == lane % 16 ? 1.f : 0.f;
#pragma unroll
    for (int m = 0; m < r; m += 4) {
      float four[4];
      load_four(&T[r][m], four);
#pragma unroll
      for (int u = 0; u < 4; ++u)
        if (m + u < r) x[r] -= four[u] * x[m + u];
    }
  }
  __syncwarp();
  if (lane < 16)
#pragma unroll
    for (int r = 0; r < 16; ++r) T[r][lane] = x[r];
}

}  // namespace lrnn::kernels::cuda
