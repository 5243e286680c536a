#pragma once
#include "kernels/cuda/diagonal/diagonal.h"
#include "kernels/cuda/tile/functions.cuh"
#include "kernels/cuda/tile/operand.cuh"
#include "kernels/cuda/tile/sequences.cuh"

// Gated linear attention 16 tokens at a time. A block has a head of a sequence and 64 columns of
// its values; the state stays in the registers of four warps as tiles of products. A thread has one
// key: the decays from one token to another are running products of its own, at most 1, and nothing
// is ever divided by them, so every decay will do. Between chunks the work is products of matrices:
// with p the decay from the chunk's beginning and r that to its end,
//
//   o = (p q)^T S + A v,   S <- r_0 S + (r k) v^T,   A_ts = sum over keys of q_t k_s decay(s to t)
namespace lrnn::kernels::cuda {

constexpr int kGlaTokens = 16, kGlaColumns = 64, kGlaThreads = 128, kGlaWarps = 4;

template <int kKeys_> struct GlaShape {
  static constexpr int kKeys = kKeys_, kTiles = kKeys / 64;  // of 16 keys, a warp
  using Keys = Operand<kKeys, kGlaTokens, 2>;                // a row a key
  using Values = Operand<kGlaTokens, kGlaColumns, 1>;
  using State = Operand<kKeys, kGlaColumns, 2>;
  using Pairs = Operand<kGlaTokens, kGlaTokens, 2>;  // A
  using Tiles = float[kTiles][kGlaColumns / 8][4];
};

// What both directions have in shared memory begins so, in bytes.
template <int kKeys> struct GlaLayout {
  using Shape = GlaShape<kKeys>;
  static constexpr size_t kQ = 0, kK = kQ + Shape::Keys::kBytes, kV = kK + Shape::Keys::kBytes,
                          kEnd = kV + Shape::Values::kBytes;
};

// What forward leaves: the state before every chunk, and A.
struct GlaKept {
  float *states, *A;
  int64_t total;
  GlaKept(const DiagonalInputs& p, float* base) {
    const int64_t keys = diagonal_chunk_keys(p), groups = (p.V + kGlaColumns - 1) / kGlaColumns;
    states = base;
    A = states + kept_states(p, kGlaTokens) * p.H * groups * keys * kGlaColumns;
    total = A + p.B * p.T * p.H * kGlaTokens - base;
  }
};

template <int kKeys> struct GlaPlace {
  int64_t s, h, v0, kept;  // kept: the slot of the sequence's first chunk
  int groups, group, warp, lane, g, c, key;
  Span span;
  __device__ __forceinline__ explicit GlaPlace(const DiagonalInputs& p) {
    groups = int((p.V + kGlaColumns - 1) / kGlaColumns);
    const int64_t head = blockIdx.x / groups;
    group = int(blockIdx.x - head * groups), v0 = int64_t(group) * kGlaColumns;
    s = head / p.H, h = head - s * p.H;
    span = span_of(p, s), kept = first_kept(p, s, kGlaTokens);
    warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, c = lane % 4;
    key = threadIdx.x;
  }
  // The first key of one of the warp's tiles.
  __device__ __forceinline__ int tile_key(int i) const {
    return (warp * GlaShape<kKeys>::kTiles + i) * 16;
  }
  __device__ __forceinline__ float* state(float* states, const DiagonalInputs& p,
                                          int64_t chunk) const {
    return states + (((kept + chunk) * p.H + h) * groups + group) * kKeys * kGlaColumns;
  }
};

// q, k and the decay of a thread's key in 16 tokens, as they lie in memory.
struct GlaKeyRaw {
  uint16_t q[kGlaTokens], k[kGlaTokens];
  float log_decay[kGlaTokens];

  template <int kKeys>
  __device__ __forceinline__ void load(const DiagonalInputs& p, const GlaPlace<kKeys>& at,
                                       int64_t first) {
#pragma unroll
    for (int t = 0; t < kGlaTokens; ++t) {
      const bool inside = at.key < p.K && first + t < at.span.length;
      const int64_t token = at.span.t0 + first + t;
      const auto bits = [&](const Rows& x) -> uint16_t {
        if (!inside) return 0;
        return static_cast<const uint16_t*>(x.data)[row_at(x, at.span.b, token, 0, at.h) + at.key];
      };
      q[t] = bits(p.q), k[t] = bits(p.k);
      log_decay[t] =
          inside ? static_cast<const float*>(
                       p.log_decay.data)[row_at(p.log_decay, at.span.b, token, 0, at.h) + at.key]
                 : 0.f;
    }
  }
};

struct GlaKey {
  float q[kGlaTokens], k[kGlaTokens], decay[kGlaTokens];  // q with the scale

  __device__ __forceinline__ GlaKey(const GlaKeyRaw& raw, float scale) {
#pragma unroll
    for (int t = 0; t < kGlaTokens; ++t) {
      q[t] = __uint_as_float(uint32_t(raw.q[t]) << 16) * scale;
      k[t] = __uint_as_float(uint32_t(raw.k[t]) << 16);
      decay[t] = exp_of(raw.log_decay[t]);
    }
  }
  // The decay from the beginning to each token, itself included, and from each token to the end.
  __device__ __forceinline__ void products(float (&begin)[kGlaTokens],
                                           float (&end)[kGlaTokens]) const {
    begin[0] = decay[0], end[kGlaTokens - 1] = 1;
#pragma unroll
    for (int t = 1; t < kGlaTokens; ++t) begin[t] = begin[t - 1] * decay[t];
#pragma unroll
    for (int t = kGlaTokens - 1; t > 0; --t) end[t - 1] = end[t] * decay[t];
  }
};

// A row of 16 tokens.
template <class To>
__device__ __forceinline__ void put_tokens(const To& to, int row, const float (&x)[kGlaTokens],
                                           const float (&factor)[kGlaTokens]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float y[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) y[i] = x[8 * half + i] * factor[8 * half + i];
    to.put_eight(row, 8 * half, y);
  }
}

// Eight values of one token a thread: a tile of v or of the gradient of o.
struct GlaValuesRaw {
  uint4 bits;
  template <int kKeys>
  __device__ __forceinline__ void load(const DiagonalInputs& p, const Rows& x,
                                       const GlaPlace<kKeys>& at, int64_t first, bool wide) {
    const int t = threadIdx.x / 8;
    const int64_t column = at.v0 + threadIdx.x % 8 * 8;
    bits = make_uint4(0, 0, 0, 0);
    if (!x.data || first + t >= at.span.length || column >= p.V) return;
    const uint16_t* const from = static_cast<const uint16_t*>(x.data) +
                                 row_at(x, at.span.b, at.span.t0 + first + t, 0, at.h) + column;
    if (wide && column + 8 <= p.V) {
      bits = *reinterpret_cast<const uint4*>(from);
      return;
    }
    uint32_t words[4] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (column + i < p.V) words[i / 2] |= uint32_t(from[i]) << (i % 2 * 16);
    bits = make_uint4(words[0], words[1], words[2], words[3]);
  }
  template <class To> __device__ __forceinline__ void put(const To& to) const {
    *reinterpret_cast<uint4*>(to.base + threadIdx.x / 8 * To::kStride + threadIdx.x % 8 * 16) =
        bits;
  }
};

// Calls f(x, element of [K,V]) for the elements of a warp's tiles that exist.
template <int kKeys, class F>
__device__ __forceinline__ void each_of_state(const DiagonalInputs& p, const GlaPlace<kKeys>& at,
                                              typename GlaShape<kKeys>::Tiles& x, F&& f) {
#pragma unroll
  for (int i = 0; i < GlaShape<kKeys>::kTiles; ++i)
#pragma unroll
    for (int j = 0; j < kGlaColumns / 8; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int64_t k = at.tile_key(i) + at.g + r / 2 * 8, v = at.v0 + 8 * j + 2 * at.c + r % 2;
        if (k < p.K && v < p.V) f(x[i][j][r], ((at.s * p.H + at.h) * p.K + k) * p.V + v);
      }
}

// A warp's tiles into shared memory, and where `kept` is not null also there.
template <int kKeys>
__device__ __forceinline__ void put_tiles(const typename GlaShape<kKeys>::State& to,
                                          const GlaPlace<kKeys>& at,
                                          const typename GlaShape<kKeys>::Tiles& x, float* kept) {
#pragma unroll
  for (int i = 0; i < GlaShape<kKeys>::kTiles; ++i)
#pragma unroll
    for (int j = 0; j < kGlaColumns / 8; ++j)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int k = at.tile_key(i) + at.g + 8 * r, v = 8 * j + 2 * at.c;
        to.put(k, v, x[i][j][2 * r], x[i][j][2 * r + 1]);
        if (kept)
          *reinterpret_cast<float2*>(kept + k * kGlaColumns + v) =
              make_float2(x[i][j][2 * r], x[i][j][2 * r + 1]);
      }
}

// Rows of a warp's tiles times a factor per key.
template <int kKeys>
__device__ __forceinline__ void times_keys(typename GlaShape<kKeys>::Tiles& x,
                                           const GlaPlace<kKeys>& at, const float* factor) {
#pragma unroll
  for (int i = 0; i < GlaShape<kKeys>::kTiles; ++i) {
    const float above = factor[at.tile_key(i) + at.g], below = factor[at.tile_key(i) + at.g + 8];
#pragma unroll
    for (int j = 0; j < kGlaColumns / 8; ++j)
      x[i][j][0] *= above, x[i][j][1] *= above, x[i][j][2] *= below, x[i][j][3] *= below;
  }
}

// Two tiles of results, 16 tokens of 16 columns from `column` on, to rows of bfloat16.
template <int kKeys>
__device__ __forceinline__ void store_values(const DiagonalInputs& p, const Rows& to,
                                             const GlaPlace<kKeys>& at, int64_t first, int column,
                                             const float (&x)[2][4]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int64_t t = first + at.g + 8 * r;
    if (t >= at.span.length) continue;
    uint16_t* const row =
        static_cast<uint16_t*>(to.data) + row_at(to, at.span.b, at.span.t0 + t, 0, at.h) + at.v0;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int v = column + 8 * j + 2 * at.c;
      const uint32_t both = pack(x[j][2 * r], x[j][2 * r + 1]);
      if (at.v0 + v < p.V) row[v] = uint16_t(both);
      if (at.v0 + v + 1 < p.V) row[v + 1] = uint16_t(both >> 16);
    }
  }
}

template <class F> void with_gla_keys(const DiagonalInputs& p, F&& f) {
  diagonal_chunk_keys(p) == 64 ? f(std::integral_constant<int, 64>())
                               : f(std::integral_constant<int, 128>());
}

inline unsigned gla_blocks(const DiagonalInputs& p) {
  const int64_t blocks = p.S * p.H * ((p.V + kGlaColumns - 1) / kGlaColumns);
  check(blocks < (int64_t(1) << 31), "[diagonal] too many sequences and heads for a grid");
  return unsigned(blocks);
}

}  // namespace lrnn::kernels::cuda
