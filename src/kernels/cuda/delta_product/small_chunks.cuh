#pragma once
#include "kernels/cuda/delta_product/chunk.cuh"
#include "kernels/cuda/tile/fragment.cuh"
#include "kernels/cuda/tile/unit_lower.cuh"

// The chunk form for heads of up to 32 x 32, where there are many: a warp is a head, a chunk 16
// micro-steps, so that a chunk's matrices are single tiles of mma.sync and most of them stay in
// registers. Operands are split in two wherever rounding them would be seen. The state and its
// gradient are kept as their transposes, rows of value channels, in the layout of accumulators.
namespace lrnn::kernels::cuda::small_chunks {

constexpr int kSteps = 16, kSide = 32, kStride = 40, kRow = kStride * 2;  // kRow: bytes
using StepRows = uint16_t[kSteps][kStride];                               // of inputs
using StateRows = uint16_t[kSide][kStride];                               // a state, rows of values
using Square = float[kSteps][kSteps + 4];

struct Vectors {
  float of[kVectorCount][kSteps];
  // Columns 8t+2c, +1 of accumulators.
  __device__ __forceinline__ float2 pair(Vector which, int t) const {
    return *reinterpret_cast<const float2*>(&of[which][t * 8 + threadIdx.x % 4 * 2]);
  }
};

__device__ __forceinline__ Matrix matrix(const uint16_t (*rows)[kStride]) {
  return {shared_address(rows), kRow};
}

// The transpose of an operand A.
__device__ __forceinline__ Fragment<2> transposed(const Fragment<2>& a) {
  Fragment<2> t;
#pragma unroll
  for (int u = 0; u < 4; ++u)
#pragma unroll
    for (int i = 0; i < 2; ++i) t.part[i][u] = cuda::transposed(a.part[i][u % 2 * 2 + u / 2]);
  return t;
}

// A tile of B(k,n) from k = 2c, 2c+1 and 2c+8, 2c+9 of column n = g.
__device__ __forceinline__ Fragment<2, 2> right_of(float2 x, float2 y) {
  Fragment<2, 2> b;
  b.set(0, x.x, x.y), b.set(1, y.x, y.y);
  return b;
}
// Rows 8t.. of results as that, transposed.
__device__ __forceinline__ Fragment<2, 2> right_of(const Tile& x, int t) {
  return right_of(make_float2(x[0][2 * t], x[0][2 * t + 1]),
                  make_float2(x[1][2 * t], x[1][2 * t + 1]));
}

// One part of an operand [16 value channels from v, 16 micro-steps] as rows of micro-steps.
__device__ __forceinline__ void put_across(const uint32_t (&a)[4], StepRows& to, int v) {
  each_across(a, [&](int i, int channel, uint32_t word) {
    *reinterpret_cast<uint32_t*>(&to[i][v + channel]) = word;
  });
}
// One part of an operand [16 rows, 16 columns from k] as it is.
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
__device__ __forceinline__ void operands(Fragment<2> (&a)[2][2], const State& S) {
#pragma unroll
  for (int m = 0; m < 2; ++m) as_fragments(a[m], S[m]);
}
// Columns of accumulators times those of a vector.
__device__ __forceinline__ void scale_columns(Tile& x, const Vectors& vectors, Vector which) {
#pragma unroll
  for (int t = 0; t < 2; ++t) {
    const float2 by = vectors.pair(which, t);
    x[t][0] *= by.x, x[t][1] *= by.y, x[t][2] *= by.x, x[t][3] *= by.y;
  }
}
// S += A M, for rows M of keys or queries.
__device__ __forceinline__ void add_rows(State& S, const Fragment<2> (&a)[2], const StepRows& M) {
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const auto b = matrix(M).b_columns(0, n * 16);
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      multiply_small_first(S[m][2 * n], a[m], b.tile(0));
      multiply_small_first(S[m][2 * n + 1], a[m], b.tile(1));
    }
  }
}
// acc [value channels, rows of M] += A M^T for a state A; `all`: M has more than eight rows.
__device__ __forceinline__ void times_keys(Tile (&acc)[2], const Fragment<2> (&a)[2][2],
                                           const StepRows& M, bool all = true) {
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const auto b = matrix(M).b_rows(k * 16, 0);
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      multiply_small_first(acc[m][0], a[m][k], b.tile(0));
      if (all) multiply_small_first(acc[m][1], a[m][k], b.tile(1));
    }
  }
}
// Rows of A times rows of B.
__device__ __forceinline__ void rows_by_rows(Tile& acc, const StepRows& A, const StepRows& B) {
#pragma unroll
  for (int k = 0; k < 2; ++k)
    multiply(acc[0], acc[1], matrix(A).a_rows(0, k * 16), matrix(B).b_rows(k * 16, 0));
}

// A head of a sequence, and its chunks.
struct Head {
  const DeltaProductInputs& p;
  const int64_t s = blockIdx.x / unsigned(p.H), h = blockIdx.x % unsigned(p.H), head = blockIdx.x;
  const Span span = span_of(p, s);
  const int64_t steps = span.length * p.N, slot0 = first_slot(p, s, kSteps);
  const int64_t error = ((span.b * p.H + h) * p.T + span.t0) * p.N;  // its first row in [B,H,T,N]

  template <class R> __device__ __forceinline__ uint16_t* rows(const R& x) const {
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
__device__ __forceinline__ void invert(Square& T, const StepRows& keys, const Vectors& vectors,
                                       const Square& decay) {
  const int lane = threadIdx.x, g = lane / 4, c = lane % 4;
  Tile L = {};
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

// A warp for every head.
template <class Problem>
void launch_small_chunks(void (*kernel)(Problem, SmallKept), const Problem& p,
                         const SmallKept& kept, void* stream) {
  if (p.S * p.H == 0) return;
  kernel<<<unsigned(p.S * p.H), 32, 0, static_cast<cudaStream_t>(stream)>>>(p, kept);
  check_launch("delta_product");
}

}  // namespace lrnn::kernels::cuda::small_chunks
