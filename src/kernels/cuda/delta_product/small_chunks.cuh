#pragma once
#include "kernels/cuda/delta_product/chunk.cuh"
#include "kernels/cuda/tile/unit_lower.cuh"

// The chunk form for heads of up to 32 x 32, where there are many: a warp is a head, a chunk 16
// micro-steps, so that a chunk's matrices are single tiles of mma.sync and most of them stay in
// registers. Operands are split in two wherever rounding them would be seen. The state and its
// gradient are kept as their transposes, rows of value channels, in the layout of accumulators.
namespace lrnn::kernels::cuda::small_chunks {

constexpr int kSteps = 16, kSide = 32, kStride = 40, kRow = kStride * 2;  // kRow: bytes
using Tile = uint16_t[kSteps][kStride];                                   // rows of inputs
using Matrix = uint16_t[kSide][kStride];                                  // a state, rows of values
using Square = float[kSteps][kSteps + 4];

struct Vectors {
  float of[kVectorCount][kSteps];
  // Columns 8t+2c, +1 of accumulators.
  __device__ __forceinline__ float2 pair(Vector which, int t) const {
    return *reinterpret_cast<const float2*>(&of[which][t * 8 + threadIdx.x % 4 * 2]);
  }
};

// An operand and what rounding left of it.
struct Left {
  uint32_t hi[4], lo[4];
  __device__ __forceinline__ void from(const float (&left)[4], const float (&right)[4]) {
    as_operand<true>(hi, lo, left, right);
  }
};
struct Right {
  uint32_t hi[2], lo[2];
  __device__ __forceinline__ void from(float2 x, float2 y) {
    hi[0] = pack(x.x, x.y), hi[1] = pack(y.x, y.y);
    lo[0] = pack_lo(x.x, x.y, hi[0]), lo[1] = pack_lo(y.x, y.y, hi[1]);
  }
};
__device__ __forceinline__ void multiply(float (&c)[4], const Left& a, uint32_t b0, uint32_t b1) {
  mma(c, a.lo, b0, b1);
  mma(c, a.hi, b0, b1);
}
__device__ __forceinline__ void multiply(float (&c)[4], const Left& a, const Right& b) {
  mma(c, a.lo, b.lo[0], b.lo[1]);
  mma(c, a.hi, b.lo[0], b.lo[1]);
  mma(c, a.lo, b.hi[0], b.hi[1]);
  mma(c, a.hi, b.hi[0], b.hi[1]);
}

// A 16x16 operand from rows in shared memory: left A(m,k) = M[m][k] or, across, M[k][m]; right
// B(k,n) = M[n][k] or, across, M[k][n], two tiles of n.
__device__ __forceinline__ uint32_t place(const uint16_t (*rows)[kStride], int row, int column) {
  return shared_address(&rows[row][column]);
}
__device__ __forceinline__ void left_rows(uint32_t (&a)[4], const uint16_t (*M)[kStride], int k) {
  ldmatrix(a, place(M, 0, k) + lane_transposed(kRow));
}
__device__ __forceinline__ void left_across(uint32_t (&a)[4], const uint16_t (*M)[kStride], int m) {
  ldmatrix_transposed(a, place(M, 0, m) + lane_direct(kRow));
}
__device__ __forceinline__ void right_rows(uint32_t (&b)[4], const uint16_t (*M)[kStride], int k) {
  ldmatrix(b, place(M, 0, k) + lane_direct(kRow));
}
__device__ __forceinline__ void right_across(uint32_t (&b)[4], const uint16_t (*M)[kStride], int k,
                                             int n) {
  ldmatrix_transposed(b, place(M, k, n) + lane_transposed(kRow));
}

// Each 8x8 of an operand to its transpose.
__device__ __forceinline__ uint32_t transposed(uint32_t x) {
  uint32_t y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;\n" : "=r"(y) : "r"(x));
  return y;
}
__device__ __forceinline__ Left transposed(const Left& a) {
  Left t;
#pragma unroll
  for (int u = 0; u < 4; ++u)
    t.hi[u] = transposed(a.hi[u % 2 * 2 + u / 2]), t.lo[u] = transposed(a.lo[u % 2 * 2 + u / 2]);
  return t;
}

// An operand [16 value channels from v, 16 micro-steps] as rows of micro-steps.
__device__ __forceinline__ void put_across(const uint32_t (&a)[4], Tile& to, int v) {
  const int g = threadIdx.x / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int u = 0; u < 4; ++u)
    *reinterpret_cast<uint32_t*>(&to[u / 2 * 8 + g][v + u % 2 * 8 + 2 * c]) = transposed(a[u]);
}
// An operand [16 rows, 16 columns from k] as it is.
__device__ __forceinline__ void put(const uint32_t (&a)[4], uint16_t (*to)[kStride], int k) {
  const int g = threadIdx.x / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int u = 0; u < 4; ++u)
    *reinterpret_cast<uint32_t*>(&to[u % 2 * 8 + g][k + u / 2 * 8 + 2 * c]) = a[u];
}

// Rows to and from memory, 16 bytes a lane; zeros outside.
template <int kRows>
__device__ __forceinline__ void fetch(uint16_t (&to)[kRows][kStride], const uint16_t* from,
                                      int64_t step, int rows, int width) {
#pragma unroll
  for (int n = 0; n < kRows / 8; ++n) {
    const int i = n * 8 + threadIdx.x / 4, piece = threadIdx.x % 4 * 8;
    const bool inside = i < rows && piece < width;
    copy_async(shared_address(&to[i][piece]), inside ? from + i * step + piece : from, inside);
  }
}
template <int kRows>
__device__ __forceinline__ void store(const uint16_t (&from)[kRows][kStride], uint16_t* to,
                                      int64_t step, int rows, int width) {
#pragma unroll
  for (int n = 0; n < kRows / 8; ++n) {
    const int i = n * 8 + threadIdx.x / 4, piece = threadIdx.x % 4 * 8;
    if (i < rows && piece < width)
      *reinterpret_cast<uint4*>(to + i * step + piece) =
          *reinterpret_cast<const uint4*>(&from[i][piece]);
  }
}

// A state [K,V] in float32 to and from accumulators of its transpose.
using State = float[2][4][4];
template <class F> __device__ __forceinline__ void each(int K, int V, F&& f) {
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int t = 0; t < 4; ++t)
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const int v = m * 16 + threadIdx.x / 4 + u / 2 * 8, k = t * 8 + threadIdx.x % 4 * 2 + u % 2;
        f(m, t, u, k < K && v < V ? k * V + v : -1);
      }
}
__device__ __forceinline__ void read_state(State& S, const float* from, int K, int V) {
  each(K, V, [&](int m, int t, int u, int at) { S[m][t][u] = from && at >= 0 ? from[at] : 0.f; });
}
__device__ __forceinline__ void write_state(const State& S, float* to, int K, int V) {
  each(K, V, [&](int m, int t, int u, int at) {
    if (at >= 0) to[at] = S[m][t][u];
  });
}
__device__ __forceinline__ void scale(State& S, float by) {
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int t = 0; t < 4; ++t)
#pragma unroll
      for (int u = 0; u < 4; ++u) S[m][t][u] *= by;
}
__device__ __forceinline__ void operands(Left (&a)[2][2], const State& S) {
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int k = 0; k < 2; ++k) a[m][k].from(S[m][2 * k], S[m][2 * k + 1]);
}
// Columns of accumulators times those of a vector.
__device__ __forceinline__ void scale_columns(float (&x)[2][4], const Vectors& vectors,
                                              Vector which) {
#pragma unroll
  for (int t = 0; t < 2; ++t) {
    const float2 by = vectors.pair(which, t);
    x[t][0] *= by.x, x[t][1] *= by.y, x[t][2] *= by.x, x[t][3] *= by.y;
  }
}
// S += A M, for rows M of keys or queries.
__device__ __forceinline__ void add_rows(State& S, const Left (&a)[2], const Tile& M) {
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    uint32_t b[4];
    right_across(b, M, 0, n * 16);
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      multiply(S[m][2 * n], a[m], b[0], b[1]);
      multiply(S[m][2 * n + 1], a[m], b[2], b[3]);
    }
  }
}
// acc [value channels, rows of M] += A M^T for a state A; `all`: M has more than eight rows.
__device__ __forceinline__ void times_keys(float (&acc)[2][2][4], const Left (&a)[2][2],
                                           const Tile& M, bool all = true) {
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    uint32_t b[4];
    right_rows(b, M, k * 16);
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      multiply(acc[m][0], a[m][k], b[0], b[1]);
      if (all) multiply(acc[m][1], a[m][k], b[2], b[3]);
    }
  }
}
// Rows of A times rows of B.
__device__ __forceinline__ void rows_by_rows(float (&acc)[2][4], const Tile& A, const Tile& B) {
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    uint32_t a[4], b[4];
    left_rows(a, A, k * 16);
    right_rows(b, B, k * 16);
    mma(acc[0], a, b[0], b[1]);
    mma(acc[1], a, b[2], b[3]);
  }
}

// A head of a sequence, and its chunks.
struct Head {
  Span span;
  int64_t h, head, steps, slot0, error;  // error: where its rows begin in [B,H,T,N]
  __device__ Head(const DeltaProductInputs& p)
      : span(span_of(p, blockIdx.x / unsigned(p.H))),
        h(blockIdx.x % unsigned(p.H)),
        head(blockIdx.x),
        steps(span.length * p.N),
        slot0(first_slot(p, blockIdx.x / unsigned(p.H), kSteps)),
        error(((span.b * p.H + h) * p.T + span.t0) * p.N) {}
  __device__ __forceinline__ uint16_t* rows(const Rows& x) const {
    return static_cast<uint16_t*>(const_cast<void*>(static_cast<const void*>(x.data))) +
           (x.data ? row_at(x, span.b, span.t0, 0, h) : 0);
  }
};

// beta and the gate of a chunk, one micro-step a lane, on their way.
template <bool kGate> struct Scalars {
  float beta = 0, log_gate = 0;
  __device__ __forceinline__ void ask(const DeltaProductInputs& p, const Head& at, int64_t first) {
    const int64_t m = first + threadIdx.x;
    beta = log_gate = 0;
    if (threadIdx.x >= kSteps || m >= at.steps) return;
    const uint32_t N = uint32_t(p.N), t = uint32_t(m) / N, j = uint32_t(m) - t * N;
    const int64_t token = at.span.b * p.T + at.span.t0 + t;
    beta = static_cast<const float*>(p.beta)[(token * p.N + j) * p.H + at.h];
    if (beta == 0) beta = kSmallestBeta;
    if (kGate && j == 0) log_gate = static_cast<const float*>(p.log_gate)[token * p.H + at.h];
  }
};

// decay[m][i], i <= m: the product of the gates after i up to m.
template <bool kGate>
__device__ __forceinline__ void fill_vectors(Vectors& vectors, Square& decay,
                                             const DeltaProductInputs& p,
                                             const Scalars<kGate>& scalars,
                                             const Queries& queries) {
  const int i = threadIdx.x;
  float(&of)[kVectorCount][kSteps] = vectors.of;
  if (i < kSteps) {
    of[kBeta][i] = scalars.beta, of[Vector::kGate][i] = kGate ? expf(scalars.log_gate) : 1.f;
    of[kBefore][i] = of[kAfter][i] = 1;
  }
  __syncwarp();
  if constexpr (kGate) {
    if (i < kSteps) {
      float a = 1;
      decay[i][i] = 1;
      for (int m = i + 1; m < kSteps; ++m) decay[m][i] = a *= of[Vector::kGate][m];
      of[kAfter][i] = a;
    }
    __syncwarp();
    if (i < kSteps) of[kBefore][i] = of[Vector::kGate][0] * decay[i][0];
    __syncwarp();
  }
  if (i < kSteps)
    of[kRead][i] = i < queries.rows ? float(p.scale) * of[kBefore][queries.at(i)] : 0.f;
  __syncwarp();
}

// T = (I + L)^-1.
template <bool kGate>
__device__ __forceinline__ void invert(Square& T, const Tile& keys, const Vectors& vectors,
                                       const Square& decay) {
  const int lane = threadIdx.x, g = lane / 4, c = lane % 4;
  float L[2][4] = {};
  rows_by_rows(L, keys, keys);
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = g + half * 8, j = t * 8 + 2 * c;
      const float beta = vectors.of[kBeta][i];
      float x = j < i ? beta * L[t][2 * half] : 0.f;
      float y = j + 1 < i ? beta * L[t][2 * half + 1] : 0.f;
      if (kGate && j < i) x *= decay[i][j];
      if (kGate && j + 1 < i) y *= decay[i][j + 1];
      *reinterpret_cast<float2*>(&T[i][j]) = make_float2(x, y);
    }
  __syncwarp();
  invert_unit_lower(T, lane);
  __syncwarp();
}

}  // namespace lrnn::kernels::cuda::small_chunks
