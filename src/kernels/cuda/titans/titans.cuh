#pragma once
#include "kernels/cuda/diagonal/diagonal.cuh"
#include "kernels/cuda/titans/titans.h"

// Memory and momentum lie in registers as the state of the diagonal recurrence does, a tile of each
// in every thread. Backward holds those of eight tokens, so tiles are half as large.
namespace lrnn::kernels::cuda {

constexpr int kTitansColumns = kDiagonalColumns / 2;

// A stage of tokens in shared memory: queries and keys [stage][size], values [stage][columns] and
// gates [stage][3].
template <class R> struct TitansStage {
  R *q, *k, *v, *gates;

  __device__ __forceinline__ TitansStage(R* memory, int size, int columns) {
    q = memory, k = q + kDiagonalStage * size, v = k + kDiagonalStage * size;
    gates = v + kDiagonalStage * columns;
  }
  // What lies behind the stage, on 16 bytes.
  __device__ __forceinline__ R* end() const { return gates + 4 * kDiagonalStage; }
  static size_t numbers(int64_t size, int64_t columns) {
    return size_t(kDiagonalStage * (2 * size + columns + 4));
  }

  __device__ __forceinline__ void fill(const TitansInputs& p, const DiagonalTokens& of, int size,
                                       int64_t v0, int columns) const {
    of.stage(q, p.type, p.q, 0, p.K, size);
    of.stage(k, p.type, p.k, 0, p.K, size);
    of.stage(v, p.type, p.v, v0, p.V, columns);
    for (int t = threadIdx.x; t < of.count; t += blockDim.x) {
      const int64_t at = (of.span.b * p.T + of.span.t0 + of.first + t) * p.H + of.h;
      gates[3 * t] = static_cast<const R*>(p.theta)[at];
      gates[3 * t + 1] = static_cast<const R*>(p.eta)[at];
      gates[3 * t + 2] = 1 - static_cast<const R*>(p.alpha)[at];
    }
  }
};

// S <- eta S - theta k e^T, M <- keep M + S with e = M^T k - v; padded keys and values are zero.
template <class R, int kRows, int kColumns>
__device__ __forceinline__ void titans_step(R (&M)[kRows][kColumns], R (&S)[kRows][kColumns],
                                            const R (&k)[kRows], const R* v, const R* gates,
                                            int lanes) {
  const R theta = gates[0], eta = gates[1], keep = gates[2];
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    R read = 0;
#pragma unroll
    for (int i = 0; i < kRows; ++i) read += M[i][j] * k[i];
    const R write = theta * (v[j] - sum_keys(read, lanes));
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      S[i][j] = eta * S[i][j] + k[i] * write;
      M[i][j] = keep * M[i][j] + S[i][j];
    }
  }
}

}  // namespace lrnn::kernels::cuda
