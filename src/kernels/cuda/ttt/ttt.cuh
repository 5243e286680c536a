#pragma once
#include "kernels/cuda/tile/common.cuh"
#include "kernels/cuda/ttt/ttt.h"

// A block has one head of one sequence: the norm couples all columns of W. W and the rows of a
// piece of a mini-batch lie in shared memory. Products are shared out by elements of the result,
// norms by rows, a warp each. Functions of a block do not wait for each other: who calls them does.
namespace lrnn::kernels::cuda {

constexpr int kTttThreads = 256, kTttTogether = 4;  // rows of a product that one thread computes

// Odd, so that neither a row nor a column of a matrix falls into one bank.
__host__ __device__ inline int ttt_row(int64_t D) { return int(D) | 1; }

// A matrix [D][row] and a row of biases; null for zeros.
template <class R> struct TttMatrix {
  const R *W, *b;
  int row;
};

// Where a block is, and the pieces of its sequence.
template <class R> struct TttPlace {
  int64_t s, h, slot;  // slot: of the first piece
  Span span;
  int position, mini_batch;

  __device__ __forceinline__ explicit TttPlace(const TttInputs& p) {
    s = blockIdx.x / p.H, h = blockIdx.x - s * p.H;
    span = span_of(p, s), mini_batch = int(p.mini_batch);
    const int at = p.position ? int(static_cast<const R*>(p.position)[s] + R(0.5)) : 0;
    position = min(max(at, 0), mini_batch - 1);
    slot = p.cu_seqlens ? span.t0 / mini_batch + 2 * s : s * (p.T / mini_batch + 2);
  }
  __device__ __forceinline__ int64_t pieces() const {
    return span.length == 0 ? 0 : (position + span.length + mini_batch - 1) / mini_batch;
  }
  // The piece begins its mini-batch.
  __device__ __forceinline__ bool whole(int64_t piece) const { return piece > 0 || position == 0; }
  __device__ __forceinline__ int64_t begin(int64_t piece) const {
    return piece == 0 ? 0 : piece * mini_batch - position;
  }
  __device__ __forceinline__ int count(int64_t piece) const {
    return int(min((piece + 1) * mini_batch - position, span.length) - begin(piece));
  }
  // Of matrix or row `which` of a state.
  __device__ __forceinline__ int64_t state(const TttInputs& p, int which) const {
    return (2 * s + which) * p.H + h;
  }
};

template <class R> struct TttBlock {
  int D, row;

  // Calls f(t, d, sum_x rows[t][x] W[x][d] + b[d]).
  template <class F>
  __device__ __forceinline__ void through(const R* rows, int n, const TttMatrix<R>& m,
                                          F&& f) const {
    product(rows, n, m.W, m.row, 1, m.b, f);
  }
  // Calls f(t, d, sum_x rows[t][x] W[d][x]).
  template <class F>
  __device__ __forceinline__ void transposed(const R* rows, int n, const TttMatrix<R>& m,
                                             F&& f) const {
    product(rows, n, m.W, 1, m.row, nullptr, f);
  }
  // Calls f(x, d, sum_t rows[t][x] values[t][d]), and with x = D the sum of the values.
  template <class F>
  __device__ __forceinline__ void outer(const R* rows, const R* values, int n, F&& f) const {
    for (int i = threadIdx.x; i < (D + 1) * D; i += blockDim.x) {
      const int x = i / D, d = i - x * D;
      R sum = 0;
      for (int t = 0; t < n; ++t) sum += (x < D ? rows[t * row + x] : R(1)) * values[t * row + d];
      f(x, d, sum);
    }
  }
  // Calls f(t, s, a_t b_s) for s <= t.
  template <class F>
  __device__ __forceinline__ void pairs(const R* a, const R* b, int n, F&& f) const {
    for (int i = threadIdx.x; i < n * n; i += blockDim.x) {
      const int t = i / n, s = i - t * n;
      if (s > t) continue;
      R sum = 0;
      for (int x = 0; x < D; ++x) sum += a[t * row + x] * b[s * row + x];
      f(t, s, sum);
    }
  }
  // Calls f(t, i) for the elements of n rows.
  template <class F> __device__ __forceinline__ void each(int n, F&& f) const {
    for (int i = threadIdx.x; i < n * D; i += blockDim.x) f(i / D, i % D);
  }

  // Calls f(t) for every row with all threads of a warp.
  template <class F> __device__ __forceinline__ void by_row(int n, F&& f) const {
    for (int t = threadIdx.x / 32; t < n; t += blockDim.x / 32) f(t);
  }
  // Within by_row: the mean of f(i), and f(i) for each element.
  template <class F> __device__ __forceinline__ R mean(F&& f) const {
    R sum = 0;
    for (int i = threadIdx.x % 32; i < D; i += 32) sum += f(i);
    return sum_lanes<32>(sum) / R(D);
  }
  template <class F> __device__ __forceinline__ void elements(F&& f) const {
    for (int i = threadIdx.x % 32; i < D; i += 32) f(i);
  }
  // Within by_row: z <- (z - mean) / root; the result is one over the root.
  __device__ __forceinline__ R normalise(R* z, double eps) const {
    const R centre = mean([&](int i) { return z[i]; });
    const R square = mean([&](int i) { return (z[i] - centre) * (z[i] - centre); });
    const R one_over = 1 / sqrt(square + R(eps));
    elements([&](int i) { z[i] = (z[i] - centre) * one_over; });
    return one_over;
  }

 private:
  template <class F>
  __device__ __forceinline__ void product(const R* rows, int n, const R* W, int along, int across,
                                          const R* b, F&& f) const {
    const int groups = (n + kTttTogether - 1) / kTttTogether;
    for (int i = threadIdx.x; i < groups * D; i += blockDim.x) {
      const int first = i / D * kTttTogether, d = i % D;
      const R* from[kTttTogether];
      R sum[kTttTogether];
#pragma unroll
      for (int u = 0; u < kTttTogether; ++u)
        from[u] = rows + min(first + u, n - 1) * row, sum[u] = b ? b[d] : R(0);
      if (W)
        for (int x = 0; x < D; ++x) {
          const R w = W[x * along + d * across];
#pragma unroll
          for (int u = 0; u < kTttTogether; ++u) sum[u] += from[u][x] * w;
        }
#pragma unroll
      for (int u = 0; u < kTttTogether; ++u)
        if (first + u < n) f(first + u, d, sum[u]);
    }
  }
};

// Rows of the tokens of a piece in shared memory, and back.
template <class R>
__device__ __forceinline__ R ttt_load(const TttInputs& p, const Rows& x, const Span& span,
                                      int64_t h, int64_t t, int i) {
  return load_as<R>(p.type, x.data, row_at(x, span.b, span.t0 + t, 0, h) + i);
}
template <class R>
__device__ __forceinline__ void ttt_store(const TttInputs& p, const Rows& x, const Span& span,
                                          int64_t h, int64_t t, int i, R value) {
  store_as<R>(p.type, x.data, row_at(x, span.b, span.t0 + t, 0, h) + i, value);
}
__device__ __forceinline__ int64_t ttt_gate(const TttInputs& p, const Span& span, int64_t h,
                                            int64_t t) {
  return (span.b * p.T + span.t0 + t) * p.H + h;
}

// The matrix that gradients of a piece are taken at: the block's own, or where the mini-batch began
// before the sequence did, the given one.
template <class R>
__device__ __forceinline__ TttMatrix<R> ttt_first(const TttInputs& p, const TttPlace<R>& at,
                                                  bool whole, const TttMatrix<R>& now) {
  if (whole) return now;
  const int64_t first = at.state(p, 1);
  return {p.W ? static_cast<const R*>(p.W) + first * p.D * p.D : nullptr,
          p.b ? static_cast<const R*>(p.b) + first * p.D : nullptr, int(p.D)};
}

// G of a row within by_row, from the error e = f(k) - v: f(i, G_i).
template <class R, class F>
__device__ __forceinline__ void ttt_gradient(const TttBlock<R>& block, const R* weight, const R* e,
                                             const R* x, R one_over, F&& f) {
  const R g = block.mean([&](int i) { return weight[i] * e[i]; });
  const R gx = block.mean([&](int i) { return weight[i] * e[i] * x[i]; });
  block.elements([&](int i) { f(i, one_over * (weight[i] * e[i] - g - gx * x[i])); });
}

}  // namespace lrnn::kernels::cuda
