#pragma once
#include "kernels/cuda/mlstm/mlstm.h"
#include "kernels/cuda/tile/functions.cuh"
#include "kernels/cuda/tile/operand.cuh"
#include "kernels/cuda/tile/pack.cuh"
#include "kernels/cuda/tile/sequences.cuh"

// The mLSTM cell a chunk of 64 tokens at a time, on tensor cores. A block has one sequence and head
// and walks its chunks in order; n is one more column of C, and of v, where it is 1.
//
// With the stabiliser m of the recurrence, the gates of a token are exp(a - m) for the state and
// exp(i - m) for the input, both at most 1. P is the running sum of a - m in a chunk, so weights
// are exp(P_t - P_s + i_s - m_s). It is kept in double, as a logarithm to the base 2: the
// difference of two large sums must not cost digits.
namespace lrnn::kernels::cuda {

constexpr int kMlstmRows = 64, kMlstmWarps = kMlstmRows / 16, kMlstmThreads = 32 * kMlstmWarps;

template <Type kType, int kSize_> struct MlstmShape {
  // Of inputs and of what is computed from them; float32 is as good as its own products.
  static constexpr int kGiven = kType == Type::kFloat32 ? 3 : 1,
                       kParts = kType == Type::kFloat32 ? 3 : 2;
  static constexpr int kSize = kSize_;         // of K and V, with padding
  static constexpr int kOne = kSize;           // the column of v that is 1
  static constexpr int kColumns = kSize + 16;  // of v and C, with n
  static constexpr int kTiles = kColumns / 8, kKeyTiles = kSize / 8;
  using Keys = Operand<kMlstmRows, kSize, kGiven>;       // q, k
  using Values = Operand<kMlstmRows, kColumns, kGiven>;  // v, 1
  using Slopes = Operand<kMlstmRows, kColumns, kParts>;  // the gradients of C^T q and n . q
  using State = Operand<kSize, kColumns, kParts>;        // C, n, or their gradients
};

// What forward leaves for backward: states before later chunks as [size, columns], what is read
// from C and n, and m before later chunks.
struct MlstmKept {
  float *states, *read, *along, *m;
  int64_t total;
  MlstmKept(const MlstmInputs& p, float* base) {
    const int64_t slots = kept_states(p, kMlstmRows) * p.H, size = mlstm_chunk_size(p),
                  tokens = p.B * p.T * p.H;
    states = base, read = states + slots * size * (size + 16), along = read + tokens * p.V;
    m = along + tokens, total = m + slots - base;
  }
};

struct MlstmPlace {
  int64_t s, h, slot;  // slot: of the first chunk, in what is kept
  Span span;
  int warp, lane, g, c;  // rows g, g + 8 and columns 2c, 2c + 1 of tiles
  __device__ __forceinline__ explicit MlstmPlace(const MlstmInputs& p) {
    s = blockIdx.x / p.H, h = blockIdx.x - s * p.H;
    span = span_of(p, s);
    slot = first_kept(p, s, kMlstmRows);
    warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, c = lane % 4;
  }
  // Of a token in [B,T,H].
  __device__ __forceinline__ int64_t token(const MlstmInputs& p, int64_t t) const {
    return (span.b * p.T + span.t0 + t) * p.H + h;
  }
};

// The gates of a chunk in shared memory.
struct MlstmChunk {
  double P[kMlstmRows], from[kMlstmRows];  // from = P - (i - m)
  float m[kMlstmRows];
};

// The gates of two tokens, lane and lane + 32, in the registers of a warp.
struct MlstmGatePair {
  float i[2], f[2], m[2], before[2];  // before: m before the token
  __device__ __forceinline__ float kept(int j) const { return log_sigmoid(f[j]) + before[j]; }
  __device__ __forceinline__ bool took_input(int j) const { return i[j] >= kept(j); }
};

// Sums up to each of the 64 tokens of which a lane has two, lane and lane + 32.
template <class R> __device__ __forceinline__ void running_sums(R (&x)[2], int lane) {
#pragma unroll
  for (int j = 0; j < 2; ++j)
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const R other = __shfl_up_sync(0xffffffffu, x[j], d);
      if (lane >= d) x[j] += other;
    }
  x[1] += __shfl_sync(0xffffffffu, x[0], 31);
}

// Runs m through a chunk; all lanes of a warp. Returns m after it. Tokens beyond the end keep the
// state as it is and put nothing in.
__device__ __forceinline__ float mlstm_gates(const MlstmInputs& p, const MlstmPlace& at,
                                             int64_t first, int count, float m, MlstmChunk& chunk,
                                             MlstmGatePair& pair) {
  float decay[2];
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const int t = at.lane + 32 * j;
    const int64_t token = at.token(p, first + min(t, count - 1));
    pair.f[j] = static_cast<const float*>(p.f)[token];
    pair.i[j] = t < count ? static_cast<const float*>(p.i)[token] : -INFINITY;
    decay[j] = t < count ? log_sigmoid(pair.f[j]) : 0.f;
  }
#pragma unroll
  for (int j = 0; j < 2; ++j)
#pragma unroll
    for (int l = 0; l < 32; ++l) {
      const float i = __shfl_sync(0xffffffffu, pair.i[j], l),
                  kept = __shfl_sync(0xffffffffu, decay[j], l) + m;
      if (at.lane == l) pair.before[j] = m;
      m = i >= kept ? i : kept;
      if (at.lane == l) pair.m[j] = m;
    }
  double P[2];
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    // A factor of exp(-10000) is zero, and unlike one of exp(-inf) it can be taken back.
    P[j] = kLog2e<double> * double(fmaxf(decay[j] + pair.before[j] - pair.m[j], -1e4f));
  }
  running_sums(P, at.lane);
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const int t = at.lane + 32 * j;
    chunk.P[t] = P[j], chunk.from[t] = P[j] - kLog2e<double> * double(pair.i[j] - pair.m[j]);
    chunk.m[t] = pair.m[j];
  }
  return m;
}

// The weight of token s in what token t reads, times `scale`; t >= s.
__device__ __forceinline__ float mlstm_weight(const MlstmChunk& chunk, double P, int s,
                                              float scale) {
  return exp2_of(float(P - chunk.from[s])) * scale;
}

// 64 rows of a tensor, `count` of them from token `first` on, zeros beyond and beyond `size`
// columns.
struct MlstmRows {
  const Rows& x;
  int64_t first, size;
  int count;
  bool wide;
};
template <Type kType, int kPadded, class To>
__device__ __forceinline__ void load_rows(const To& to, const MlstmPlace& at,
                                          const MlstmRows& from) {
  constexpr int packs = kPadded / kPack;
  const auto& [x, first, size, count, wide] = from;
  for (int i = threadIdx.x; i < kMlstmRows * packs; i += kMlstmThreads) {
    const int t = i / packs, column = i % packs * kPack;
    Pack<float> pack;
    const int n = t < count ? int(min(max(size - column, int64_t(0)), int64_t(kPack))) : 0;
    pack.load(kType, x.data, row_at(x, at.span.b, at.span.t0 + first + t, 0, at.h) + column, n,
              wide);
    float f[kPack];
#pragma unroll
    for (int j = 0; j < kPack; ++j) f[j] = pack.get(kType, j);
    to.put_eight(t, column, f);
  }
}

// The column of ones, and the padding after it.
template <class Shape> __device__ __forceinline__ void load_ones(const typename Shape::Values& v) {
  const float one[kPack] = {1.f}, zero[kPack] = {};
  if (threadIdx.x < kMlstmRows)
    v.put_eight(threadIdx.x, Shape::kOne, one), v.put_eight(threadIdx.x, Shape::kOne + kPack, zero);
}

// The rows 16 warp .. of C and n [size, columns] as tiles of results.
template <class Shape> using StateTiles = float[Shape::kTiles][4];

// C [K,V] and n [K]; zeros where they are null.
template <class Shape>
__device__ __forceinline__ void load_state(const MlstmInputs& p, const MlstmPlace& at,
                                           const void* C_, const void* n_, StateTiles<Shape>& to) {
  const int64_t head = at.s * p.H + at.h;
  const float *const C = static_cast<const float*>(C_), *const n = static_cast<const float*>(n_);
#pragma unroll
  for (int j = 0; j < Shape::kTiles; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int k = 16 * at.warp + at.g + i / 2 * 8, v = 8 * j + 2 * at.c + i % 2;
      float x = 0;
      if (k < p.K && v < p.V && C) x = C[(head * p.K + k) * p.V + v];
      if (k < p.K && v == Shape::kOne && n) x = n[head * p.K + k];
      to[j][i] = x;
    }
}
template <class Shape>
__device__ __forceinline__ void store_state(const MlstmInputs& p, const MlstmPlace& at, void* C,
                                            void* n, const StateTiles<Shape>& from) {
  const int64_t head = at.s * p.H + at.h;
#pragma unroll
  for (int j = 0; j < Shape::kTiles; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int k = 16 * at.warp + at.g + i / 2 * 8, v = 8 * j + 2 * at.c + i % 2;
      if (k < p.K && v < p.V) static_cast<float*>(C)[(head * p.K + k) * p.V + v] = from[j][i];
      if (k < p.K && v == Shape::kOne) static_cast<float*>(n)[head * p.K + k] = from[j][i];
    }
}
// Into shared memory, and where `kept` is not null also there.
template <class Shape>
__device__ __forceinline__ void put_state(const typename Shape::State& to, const MlstmPlace& at,
                                          const StateTiles<Shape>& from, float* kept) {
#pragma unroll
  for (int j = 0; j < Shape::kTiles; ++j)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int k = 16 * at.warp + at.g + 8 * i, v = 8 * j + 2 * at.c;
      to.put(k, v, from[j][2 * i], from[j][2 * i + 1]);
      if (kept)
        *reinterpret_cast<float2*>(kept + k * Shape::kColumns + v) =
            make_float2(from[j][2 * i], from[j][2 * i + 1]);
    }
}

// Tiles of results times a factor per row, g and g + 8.
template <int kTiles>
__device__ __forceinline__ void times_rows(float (&x)[kTiles][4], float above, float below) {
#pragma unroll
  for (int j = 0; j < kTiles; ++j)
    x[j][0] *= above, x[j][1] *= above, x[j][2] *= below, x[j][3] *= below;
}

// x += a b, where b is rows `begin` .. of a tile, or their transpose.
template <int kTiles, class A, class B>
__device__ __forceinline__ void add_columns(float (&x)[kTiles][4], const A& a, const B& b,
                                            int begin) {
#pragma unroll
  for (int j = 0; j < kTiles; j += 2) multiply(x[j], x[j + 1], a, b.b_columns(begin, 8 * j));
}
template <int kTiles, class A, class B>
__device__ __forceinline__ void add_rows(float (&x)[kTiles][4], const A& a, const B& b, int begin) {
#pragma unroll
  for (int j = 0; j < kTiles; j += 2) multiply(x[j], x[j + 1], a, b.b_rows(begin, 8 * j));
}

// Two neighbouring elements of a row of `size`.
template <Type kType>
__device__ __forceinline__ void store_two(void* data, int64_t at, int column, int64_t size, float x,
                                          float y) {
  if (column + 1 < size && (at + column) % 2 == 0) {
    if constexpr (kType == Type::kBFloat16)
      *reinterpret_cast<uint32_t*>(static_cast<uint16_t*>(data) + at + column) = pack(x, y);
    else
      *reinterpret_cast<float2*>(static_cast<float*>(data) + at + column) = make_float2(x, y);
    return;
  }
  if (column < size) store_as<float>(kType, data, at + column, x);
  if (column + 1 < size) store_as<float>(kType, data, at + column + 1, y);
}

// Over the columns of a row: four neighbouring lanes.
__device__ __forceinline__ float over_columns(float x) { return sum_lanes<4>(x); }

// Whether q, k, v can be loaded 16 bytes at a time.
struct MlstmWide {
  bool q, k, v;
  explicit MlstmWide(const MlstmInputs& p)
      : q(lies_on_packs(p.q, p.type)),
        k(lies_on_packs(p.k, p.type)),
        v(lies_on_packs(p.v, p.type)) {}
};

// Calls f(type, size, states) with all three known when compiling.
template <class F> void with_mlstm_kind(const MlstmInputs& p, bool states, F&& f) {
  const auto by_states = [&](auto type, auto size) {
    states ? f(type, size, std::true_type()) : f(type, size, std::false_type());
  };
  const auto by_size = [&](auto type) {
    mlstm_chunk_size(p) == 32 ? by_states(type, std::integral_constant<int, 32>())
                              : by_states(type, std::integral_constant<int, 64>());
  };
  p.type == Type::kBFloat16 ? by_size(std::integral_constant<Type, Type::kBFloat16>())
                            : by_size(std::integral_constant<Type, Type::kFloat32>());
}

// A block for every sequence and head.
template <class Problem>
void launch_mlstm(void (*kernel)(Problem, MlstmKept, MlstmWide), size_t bytes, const Problem& p,
                  const MlstmKept& kept, void* stream) {
  allow_shared(kernel, bytes);
  kernel<<<unsigned(p.S * p.H), kMlstmThreads, bytes, static_cast<cudaStream_t>(stream)>>>(
      p, kept, MlstmWide(p));
  check_launch("mlstm");
}

}  // namespace lrnn::kernels::cuda
