#pragma once
#include "kernels/cuda/delta_product/delta_product.h"
#include "kernels/cuda/tile/common.cuh"
#include "kernels/cuda/tile/copy.cuh"
#include "kernels/cuda/tile/fragment.cuh"
#include "kernels/cuda/tile/unit_lower.cuh"

// What both directions share. A block is a head; micro-steps come in blocks of 16, so that the
// triangular system is solved a block at a time. What it is solved for is kept as its transpose,
// rows of value channels, 16 to a warp, in the layout of accumulators: no warp waits for another.
namespace lrnn::kernels::cuda::one_chunk {

constexpr int kSide = 128, kWarps = 8, kThreads = kWarps * 32;  // kSide: most channels
constexpr int kMostBlocks = 5;                                  // of micro-steps
constexpr int kWide = row_bytes(kSide);                         // a row of inputs, in bytes

__device__ __forceinline__ void store_shared(uint32_t at, uint32_t x) {
  asm volatile("st.shared.u32 [%0], %1;\n" ::"r"(at), "r"(x) : "memory");
}
__device__ __forceinline__ void store_shared(uint32_t at, uint16_t x) {
  asm volatile("st.shared.u16 [%0], %1;\n" ::"r"(at), "h"(x) : "memory");
}
// A tile as rows i.. and columns j.. of a matrix.
__device__ __forceinline__ void put(const Tile& x, const SplitMatrix& M, int i, int j) {
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t part[2];
      split(x[t][2 * half], x[t][2 * half + 1], part);
      const int row = i + g + half * 8, column = j + t * 8 + 2 * c;
      store_shared(M.hi.at(row, column), part[0]);
      store_shared(M.lo.at(row, column), part[1]);
    }
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
  const DeltaProductInputs& p;
  const int64_t s = blockIdx.x / unsigned(p.H), h = blockIdx.x % unsigned(p.H);
  const int64_t error = (s * p.H + h) * p.T * p.N,
                token = s * p.T;  // first rows in [B,H,T,N], [B,T]
  const int N = int(p.N), steps = int(p.T * p.N), queries = p.q.data ? int(p.T) : 0;

  template <class R> __device__ __forceinline__ uint16_t* rows(const R& x) const {
    return static_cast<uint16_t*>(const_cast<void*>(static_cast<const void*>(x.data))) +
           (x.data ? row_at(x, s, 0, 0, h) : 0);
  }
  // The last micro-step that query t sees, -1 beyond the queries.
  __device__ __forceinline__ int last(int t) const { return t < queries ? t * N + N - 1 : -1; }
  __device__ __forceinline__ int64_t scalar(int i) const {
    return (token * p.N + i) * p.H + h;  // in [B,T,N,H]
  }
};

__host__ __device__ constexpr int round16(int n) { return (n + 15) / 16 * 16; }
using Square = float[16][20];

// beta = 0 would lose the error e = D / beta that the gradient of beta needs.
constexpr float kLeastBeta = 0x1p-60f;
__device__ __forceinline__ void load_beta(float* beta, const Head& at, int rows) {
  for (int i = int(threadIdx.x); i < rows; i += kThreads) {
    const float x = i < at.steps ? static_cast<const float*>(at.p.beta)[at.scalar(i)] : 0.f;
    beta[i] = x == 0 ? kLeastBeta : x;
  }
}

// What the places of things in shared memory follow from.
struct ChunkSize {
  int blocks, query_rows;
  const int steps = blocks * 16, square = row_bytes(steps);
};

// What both directions have in shared memory.
struct Shared {
  Matrix k, q;
  SplitMatrix L, P;
  Square* T;  // the inverses of the diagonal blocks of I + L
  float* beta;
  template <class Places> __device__ Shared(unsigned char* memory, const Places& places) {
    const uint32_t base = shared_address(memory);
    const int square = places.square;
    const auto squares = [&](int at, int rows) {
      return SplitMatrix{{base + at, square}, {base + at + rows * square, square}};
    };
    k = {base + places.k, kWide}, q = {base + places.q, kWide};
    L = squares(places.L, places.steps), P = squares(places.P, places.query_rows);
    T = reinterpret_cast<Square*>(memory + places.T);
    beta = reinterpret_cast<float*>(memory + places.beta);
  }
};

// Rows i.. of A times rows j.. of B, over all channels.
__device__ __forceinline__ void rows_by_rows(Tile& x, const Matrix& A, const Matrix& B, int i,
                                             int j) {
#pragma unroll
  for (int k = 0; k < kSide; k += 16) multiply(x[0], x[1], A.a_rows(i, k), B.b_rows(k, j));
}

// The blocks of L below the diagonal, and P.
template <int kBlocks>
__device__ __forceinline__ void fill(const Shared& shared, const Head& at, float scale) {
  constexpr int kBelow = kBlocks * (kBlocks - 1) / 2;
  const int warp = threadIdx.x / 32, query_blocks = (at.queries + 15) / 16;
  for (int n = warp; n < kBelow + query_blocks * kBlocks; n += kWarps) {
    Tile x = {};
    if (n < kBelow) {
      int i = 1;
      while (i * (i + 1) / 2 <= n) ++i;
      const int j = n - i * (i - 1) / 2;
      rows_by_rows(x, shared.k, shared.k, i * 16, j * 16);
      each([&](int t, int u, int row, int) { x[t][u] *= shared.beta[i * 16 + row]; });
      put(x, shared.L, i * 16, j * 16);
    } else {
      const int t0 = (n - kBelow) / kBlocks * 16, j = (n - kBelow) % kBlocks * 16;
      rows_by_rows(x, shared.q, shared.k, t0, j);
      each([&](int t, int u, int row, int column) {
        x[t][u] = j + column <= at.last(t0 + row) ? scale * x[t][u] : 0.f;
      });
      put(x, shared.P, t0, j);
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
  const auto a = as_fragment<2>(x[0], x[1]);
  Fragment<2> b;
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int k = half * 8 + 2 * c, n = t * 8 + g;
      b.set(2 * t + half, kAcross ? T[k][n] : T[n][k], kAcross ? T[k + 1][n] : T[n][k + 1]);
    }
  each([&](int t, int u, int, int) { x[t][u] = 0; });
  multiply_small_first(x, a, b);
}

// A block a head, of the kernel for three blocks of micro-steps where they are enough.
template <class Places, class Problem, class Lo>
void launch(const Problem& p, Lo* error_lo, void (*three)(Problem, Lo*), void (*most)(Problem, Lo*),
            void* stream) {
  if (p.S * p.H == 0) return;
  const bool few = p.T * p.N <= 3 * 16;
  const auto kernel = few ? three : most;
  const auto bytes = size_t(Places{few ? 3 : kMostBlocks, p.q.data ? round16(int(p.T)) : 0}.all);
  allow_shared(kernel, bytes);
  kernel<<<unsigned(p.S * p.H), kThreads, bytes, static_cast<cudaStream_t>(stream)>>>(p, error_lo);
  check_launch("delta_product");
}

}  // namespace lrnn::kernels::cuda::one_chunk
