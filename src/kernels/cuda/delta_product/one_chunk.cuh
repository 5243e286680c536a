#pragma once
#include "kernels/cuda/delta_product/one_chunk.h"
#include "kernels/cuda/tile/common.cuh"
#include "kernels/cuda/tile/mma.cuh"
#include "kernels/cuda/tile/unit_lower.cuh"

// What both directions share. A block is a head; micro-steps come in blocks of 16, so that the
// triangular system is solved a block at a time. What it is solved for is kept as its transpose,
// rows of value channels, 16 to a warp, in the layout of accumulators: no warp waits for another.
namespace lrnn::kernels::cuda::one_chunk {

constexpr int kSide = 128, kWarps = 8, kThreads = kWarps * 32;  // kSide: most channels
constexpr int kMostBlocks = 5;                                  // of micro-steps
constexpr int kWide = row_bytes(kSide);                         // a row of inputs, in bytes

// Rows of bfloat16 in shared memory.
struct Matrix {
  uint32_t base;
  int row;  // bytes
  __device__ __forceinline__ uint32_t at(int i, int j) const { return base + i * row + j * 2; }
};
// And what rounding left of them.
struct Split {
  Matrix hi, lo;
};

// A 16x16 operand: left A(m,k) = M[i+m][j+k], across M[i+k][j+m]; right B(k,n) = M[i+n][j+k], two
// tiles of n, across M[i+k][j+n].
__device__ __forceinline__ void left(uint32_t (&a)[4], const Matrix& M, int i, int j) {
  ldmatrix(a, M.at(i, j) + lane_transposed(M.row));
}
__device__ __forceinline__ void left_across(uint32_t (&a)[4], const Matrix& M, int i, int j) {
  ldmatrix_transposed(a, M.at(i, j) + lane_direct(M.row));
}
__device__ __forceinline__ void right(uint32_t (&b)[4], const Matrix& M, int i, int j) {
  ldmatrix(b, M.at(i, j) + lane_direct(M.row));
}
__device__ __forceinline__ void right_across(uint32_t (&b)[4], const Matrix& M, int i, int j) {
  ldmatrix_transposed(b, M.at(i, j) + lane_transposed(M.row));
}

using Tile = float[2][4];  // 16 x 16 accumulators

__device__ __forceinline__ void multiply(Tile& c, const uint32_t (&a)[4], const uint32_t (&b)[4]) {
  mma(c[0], a, b[0], b[1]);
  mma(c[1], a, b[2], b[3]);
}

// An operand and its rest.
struct Left {
  uint32_t hi[4], lo[4];
  __device__ __forceinline__ void from(const Tile& x) { as_operand<true>(hi, lo, x[0], x[1]); }
};
__device__ __forceinline__ void multiply(Tile& c, const Left& a, const uint32_t (&b)[4]) {
  multiply(c, a.lo, b);
  multiply(c, a.hi, b);
}
__device__ __forceinline__ void multiply(Tile& c, const Left& a, const uint32_t (&b)[4],
                                         const uint32_t (&b_lo)[4]) {
  multiply(c, a.lo, b_lo);
  multiply(c, a.hi, b_lo);
  multiply(c, a.lo, b);
  multiply(c, a.hi, b);
}

// Calls f(t, u, row, column) for the values x[t][u] that this lane has of a tile.
template <class F> __device__ __forceinline__ void each(F&& f) {
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) f(t, u, g + u / 2 * 8, t * 8 + 2 * c + u % 2);
}
__device__ __forceinline__ void store_shared(uint32_t at, uint32_t x) {
  asm volatile("st.shared.u32 [%0], %1;\n" ::"r"(at), "r"(x) : "memory");
}
__device__ __forceinline__ void store_shared(uint32_t at, uint16_t x) {
  asm volatile("st.shared.u16 [%0], %1;\n" ::"r"(at), "h"(x) : "memory");
}
// A tile as rows i.. and columns j.. of a matrix.
__device__ __forceinline__ void put(const Tile& x, const Split& M, int i, int j) {
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float a = x[t][2 * half], b = x[t][2 * half + 1];
      const uint32_t both = pack(a, b);
      const int row = i + g + half * 8, column = j + t * 8 + 2 * c;
      store_shared(M.hi.at(row, column), both);
      store_shared(M.lo.at(row, column), pack_lo(a, b, both));
    }
}

__device__ __forceinline__ uint32_t transposed(uint32_t x) {  // of 8 x 8
  uint32_t y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;\n" : "=r"(y) : "r"(x));
  return y;
}
// An operand [16 value channels, 16 micro-steps] as rows of micro-steps: f(row, channel, word), the
// word two neighbouring channels.
template <class F> __device__ __forceinline__ void each_across(const uint32_t (&a)[4], F&& f) {
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int u = 0; u < 4; ++u) f(u / 2 * 8 + g, u % 2 * 8 + 2 * c, transposed(a[u]));
}

// Rows of inputs to shared memory, 16 bytes at a time; zeros outside.
__device__ __forceinline__ void fetch(const Matrix& to, const uint16_t* from, int64_t step,
                                      int rows, int inside, int width) {
  for (int n = int(threadIdx.x); n < rows * (kSide / 8); n += kThreads) {
    const int i = n / (kSide / 8), piece = n % (kSide / 8) * 8;
    const bool there = i < inside && piece < width;
    copy_async(to.at(i, piece), there ? from + i * step + piece : from, there);
  }
}

// One head of one sequence.
struct Head {
  int64_t s, h, error, token;  // error: its first row in [B,H,T,N]; token: in [B,T]
  int steps, queries, N;
  __device__ explicit Head(const DeltaProductInputs& p)
      : s(blockIdx.x / unsigned(p.H)),
        h(blockIdx.x % unsigned(p.H)),
        error((s * p.H + h) * p.T * p.N),
        token(s * p.T),
        steps(int(p.T * p.N)),
        queries(p.q.data ? int(p.T) : 0),
        N(int(p.N)) {}
  __device__ __forceinline__ uint16_t* rows(const Rows& x) const {
    return static_cast<uint16_t*>(const_cast<void*>(static_cast<const void*>(x.data))) +
           (x.data ? row_at(x, s, 0, 0, h) : 0);
  }
  // The last micro-step that query t sees, -1 beyond the queries.
  __device__ __forceinline__ int last(int t) const { return t < queries ? t * N + N - 1 : -1; }
  __device__ __forceinline__ int64_t scalar(const DeltaProductInputs& p, int i) const {
    return (token * p.N + i) * p.H + h;  // in [B,T,N,H]
  }
};

__host__ __device__ constexpr int round16(int n) { return (n + 15) / 16 * 16; }
using Square = float[16][20];

// beta = 0 would lose the error e = D / beta that the gradient of beta needs.
constexpr float kLeastBeta = 0x1p-60f;
__device__ __forceinline__ void load_beta(float* beta, const DeltaProductInputs& p, const Head& at,
                                          int rows) {
  for (int i = int(threadIdx.x); i < rows; i += kThreads) {
    const float x = i < at.steps ? static_cast<const float*>(p.beta)[at.scalar(p, i)] : 0.f;
    beta[i] = x == 0 ? kLeastBeta : x;
  }
}

// Rows i.. of A times rows j.. of B, over all channels.
__device__ __forceinline__ void rows_by_rows(Tile& x, const Matrix& A, const Matrix& B, int i,
                                             int j) {
#pragma unroll
  for (int k = 0; k < kSide; k += 16) {
    uint32_t a[4], b[4];
    left(a, A, i, k);
    right(b, B, j, k);
    multiply(x, a, b);
  }
}

// The blocks of L below the diagonal, and P.
template <int kBlocks>
__device__ __forceinline__ void fill(const Split& L, const Split& P, const Matrix& k,
                                     const Matrix& q, const float* beta, const Head& at,
                                     float scale) {
  constexpr int kBelow = kBlocks * (kBlocks - 1) / 2;
  const int warp = threadIdx.x / 32, query_blocks = (at.queries + 15) / 16;
  for (int n = warp; n < kBelow + query_blocks * kBlocks; n += kWarps) {
    Tile x = {};
    if (n < kBelow) {
      int i = 1;
      while (i * (i + 1) / 2 <= n) ++i;
      const int j = n - i * (i - 1) / 2;
      rows_by_rows(x, k, k, i * 16, j * 16);
      each([&](int t, int u, int row, int) { x[t][u] *= beta[i * 16 + row]; });
      put(x, L, i * 16, j * 16);
    } else {
      const int t0 = (n - kBelow) / kBlocks * 16, j = (n - kBelow) % kBlocks * 16;
      rows_by_rows(x, q, k, t0, j);
      each([&](int t, int u, int row, int column) {
        x[t][u] = j + column <= at.last(t0 + row) ? scale * x[t][u] : 0.f;
      });
      put(x, P, t0, j);
    }
  }
}

// The inverse of a diagonal block of I + L: a warp's work.
__device__ __forceinline__ void invert(Square& T, const Matrix& k, const float* beta, int i) {
  Tile x = {};
  rows_by_rows(x, k, k, i, i);
  each([&](int t, int u, int row, int column) {
    T[row][column] = column < row ? beta[i + row] * x[t][u] : 0.f;
  });
  __syncwarp();
  invert_unit_lower(T, threadIdx.x % 32);
}

// x = x T^T, or x T for kAcross, for a tile of value channels and the micro-steps of a block.
template <bool kAcross> __device__ __forceinline__ void apply(Tile& x, const Square& T) {
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
  Left a;
  a.from(x);
  uint32_t b[4], b_lo[4];
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int k = half * 8 + 2 * c, n = t * 8 + g;
      const float y = kAcross ? T[k][n] : T[n][k], z = kAcross ? T[k + 1][n] : T[n][k + 1];
      b[2 * t + half] = pack(y, z);
      b_lo[2 * t + half] = pack_lo(y, z, b[2 * t + half]);
    }
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) x[t][u] = 0;
  multiply(x, a, b, b_lo);
}

// A block a head, of the kernel for three blocks of micro-steps where they are enough.
template <class Places, class Problem, class Lo>
void launch(const Problem& p, Lo* error_lo, void (*three)(Problem, Lo*), void (*most)(Problem, Lo*),
            void* stream) {
  if (p.S * p.H == 0) return;
  const bool few = p.T * p.N <= 3 * 16;
  const auto kernel = few ? three : most;
  const auto bytes = size_t(Places(few ? 3 : kMostBlocks, p.q.data ? round16(int(p.T)) : 0).all);
  allow_shared(kernel, bytes);
  kernel<<<unsigned(p.S * p.H), kThreads, bytes, static_cast<cudaStream_t>(stream)>>>(p, error_lo);
  check_launch("delta_product");
}

}  // namespace lrnn::kernels::cuda::one_chunk
