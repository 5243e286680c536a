#pragma once
#include <type_traits>

#include "kernels/cuda/diagonal/diagonal.h"
#include "kernels/cuda/tile/functions.cuh"
#include "kernels/cuda/tile/operand.cuh"
#include "kernels/cuda/tile/pack.cuh"
#include "kernels/cuda/tile/sequences.cuh"

// Gated linear attention 64 tokens at a time, all chunks at once. With p the decay from the chunk's
// beginning up to a token, r that from a token to the end, and A_ts the sum over keys of
// q_t k_s (decay from s to t),
//
//   o = scale ((p q)^T S + A v),   S after = (decay of the chunk) S before + (r k) v^T
//
// What a chunk adds to the state comes first (chunk_states.cu), then one light walk over the chunks
// makes their states of that, then the outputs of all chunks are made at once.
//
// A thread has one key of 16 tokens. Decays are running products of its own, at most 1, and nothing
// is ever divided by them, so every decay will do. Pairs of tokens become products of matrices by
// levels n = 32, 16, .. 1: the pieces of 2n tokens are cut in the middle; a token of the second
// half reads, one of the first half was written, and the decay between them is what is left from
// the middle on times what is left up to it. Every pair s < t is cut at exactly one level, and at
// each level a token is either a reader or a writer:
//
//   x_t = (decay between t and the middle) (q_t if t has the bit n, else k_t),   A_ts = x_t . x_s
namespace lrnn::kernels::cuda {

constexpr int kGlaTokens = 64, kGlaBlock = 16, kGlaBlocks = 4, kGlaColumns = 64;
// Bytes a block may have: with 64 keys two of them share a processor.
constexpr int gla_most_shared(int keys) { return keys == 64 ? 113 * 1024 : kMostShared; }

template <int kKeys_> struct GlaShape {
  static constexpr int kKeys = kKeys_, kThreads = kKeys * kGlaBlocks, kWarps = kThreads / 32,
                       kGroups = kKeys / 32;     // of keys, a warp each
  using Keys = Operand<kKeys, kGlaTokens, 2>;    // a row a key
  using Rows16 = Operand<kGlaTokens, kKeys, 1>;  // of keys or queries as they come
  using Values = Operand<kGlaTokens, kGlaColumns, 1>;
  using State = Operand<kKeys, kGlaColumns, 2>;
  using Pairs = Operand<kGlaTokens, kGlaTokens, 2>;  // A
  using Near = Operand<32, kGlaBlock, 2>;            // what a warp has of a level
};

// The states of all chunks in memory. A state is tiles of 64 columns, a tile is rows of keys, and
// eight numbers of a row are eight float32 (what the chunk adds), later the eight bfloat16 that
// they round to and the eight that this left. Behind them the decay of each chunk, and A of each 16
// tokens, for backward.
struct GlaStates {
  float *states, *decays, *pairs;
  int64_t tiles, record, total;  // record: floats of a state
  GlaStates(const DiagonalInputs& p, float* base) {
    const int64_t keys = diagonal_chunk_keys(p), count = kept_states(p, kGlaTokens) * p.H;
    tiles = (p.V + kGlaColumns - 1) / kGlaColumns, record = tiles * keys * kGlaColumns;
    states = base, decays = states + count * record, pairs = decays + count * keys;
    total = count * (record + keys + kGlaTokens * kGlaBlock);
  }
};

// Which chunk of which sequence a block has.
struct GlaChunk {
  int b, h, token, count;  // tokens: `count` from `token` on; 0: there is nothing here

  __device__ __forceinline__ static int64_t item() { return blockIdx.x; }  // of [slots, H]

  __device__ __forceinline__ explicit GlaChunk(const DiagonalInputs& p) {
    const uint32_t slot = blockIdx.x / uint32_t(p.H);
    h = int(blockIdx.x - slot * uint32_t(p.H));
    int64_t s = 0;
    if (!p.cu_seqlens) {
      s = slot / uint32_t((p.T + kGlaTokens - 1) / kGlaTokens);
    } else {
      int64_t end = p.S;  // the last sequence whose first slot is not beyond this one
      while (end - s > 1) {
        const int64_t middle = (s + end) / 2;
        (first_kept(p, middle, kGlaTokens) <= slot ? s : end) = middle;
      }
    }
    const Span span = span_of(p, s);
    const int64_t first = (slot - first_kept(p, s, kGlaTokens)) * kGlaTokens,
                  left = span.length - first;
    b = int(span.b), token = int(span.t0 + first);
    count = left <= 0 ? 0 : int(min(left, int64_t(kGlaTokens)));
  }
  __device__ __forceinline__ int64_t row(const Rows& x, int t) const {
    return row_at(x, b, token + t, 0, h);
  }
};

// A thread's place: its key, its 16 tokens.
template <int kKeys> struct GlaPlace {
  const int key = threadIdx.x % kKeys, block = threadIdx.x / kKeys, lane = threadIdx.x % 32,
            warp = threadIdx.x / 32, group = key / 32, g = lane / 4, c = lane % 4;
  // This thread's first number of rows of keys.
  __device__ __forceinline__ int begin() const { return block * kGlaBlock * kKeys + key; }
};

// Rows of keys of a chunk on their way to shared memory, [kGlaTokens][kStride]; zeros outside.
// wide: rows lie on 16 bytes.
template <class T, int kKeys, int kStride = kKeys>
__device__ __forceinline__ void fetch_rows(T* to, const Rows& rows, const GlaChunk& at, int64_t K,
                                           bool wide) {
  constexpr int kEach = 16 / sizeof(T), kPieces = kKeys / kEach,
                kPass = GlaShape<kKeys>::kThreads / kPieces;
  const int column = int(threadIdx.x % kPieces) * kEach, first = int(threadIdx.x / kPieces);
  const int64_t step = kPass * rows.token;
  const T* from = static_cast<const T*>(rows.data) + at.row(rows, first) + column;
  T* place = to + first * kStride + column;
  if (wide && column + kEach <= K) {
    const uint32_t place_at = shared_address(place);
#pragma unroll
    for (int n = 0; n < kGlaTokens / kPass; ++n) {
      const bool inside = first + n * kPass < at.count;
      copy_async(place_at + n * (kPass * kStride * int(sizeof(T))), inside ? from : rows.data,
                 inside);
      from += step;
    }
    return;
  }
#pragma unroll 1
  for (int t = first; t < kGlaTokens; t += kPass) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) place[j] = t < at.count && column + j < K ? from[j] : T(0);
    from += step, place += kPass * kStride;
  }
}
// Which rows lie on 16 bytes.
struct GlaWide {
  bool q, k, v, log_decay, o;  // o: or its gradient
  explicit GlaWide(const DiagonalInputs& p, const Rows& o_)
      : q(lies_on_packs(p.q, p.type)),
        k(lies_on_packs(p.k, p.type)),
        v(lies_on_packs(p.v, p.type)),
        log_decay(lies_on_packs(p.log_decay, Type::kFloat32)),
        o(lies_on_packs(o_, p.type)) {}
};

// 64 tokens of 64 columns of v or of the gradient of o: on their way to shared memory. Outside,
// zeros.
template <int kThreads>
__device__ __forceinline__ void fetch_values(const Operand<kGlaTokens, kGlaColumns, 1>& to,
                                             const Rows& x, const GlaChunk& at, int64_t V,
                                             int64_t v0, bool wide) {
  constexpr int kStride = Operand<kGlaTokens, kGlaColumns, 1>::kStride, kPass = kThreads / 8;
  const int first = int(threadIdx.x / 8);
  const int64_t column = v0 + threadIdx.x % 8 * 8, step = kPass * x.token;
  unsigned char* place = to.base + first * kStride + threadIdx.x % 8 * 16;
  const uint16_t* from =
      static_cast<const uint16_t*>(x.data) + (x.data ? at.row(x, first) + column : 0);
  if (wide && x.data && column + 8 <= V) {
#pragma unroll
    for (int n = 0; n < kGlaTokens / kPass; ++n) {
      const bool inside = first + n * kPass < at.count;
      copy_async(shared_address(place) + n * kPass * kStride,
                 inside ? static_cast<const void*>(from) : x.data, inside);
      from += step;
    }
    return;
  }
#pragma unroll 1
  for (int t = first; t < kGlaTokens; t += kPass) {
    uint32_t words[4] = {};
    const int inside = x.data && t < at.count ? int(min(V - column, int64_t(8))) : 0;
#pragma unroll
    for (int j = 0; j < 8; ++j)
      if (j < inside) words[j / 2] |= uint32_t(from[j]) << (j % 2 * 16);
    *reinterpret_cast<uint4*>(place) = make_uint4(words[0], words[1], words[2], words[3]);
    from += step, place += kPass * kStride;
  }
}
// Results of 64 tokens from shared memory to rows of bfloat16.
template <int kThreads>
__device__ __forceinline__ void store_values(const Operand<kGlaTokens, kGlaColumns, 1>& from,
                                             const Rows& x, const GlaChunk& at, int64_t V,
                                             int64_t v0, bool wide) {
  constexpr int kStride = Operand<kGlaTokens, kGlaColumns, 1>::kStride, kPass = kThreads / 8;
  const int64_t column = v0 + threadIdx.x % 8 * 8;
  if (column >= V) return;
#pragma unroll 2
  for (int t = int(threadIdx.x / 8); t < at.count; t += kPass) {
    const unsigned char* const here = from.base + t * kStride + threadIdx.x % 8 * 16;
    uint16_t* const to = static_cast<uint16_t*>(x.data) + at.row(x, t) + column;
    if (wide && column + 8 <= V) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(here);
      continue;
    }
    for (int j = 0; j < 8 && column + j < V; ++j)
      to[j] = reinterpret_cast<const uint16_t*>(here)[j];
  }
}
// A tile of a state in its two parts.
template <int kKeys>
__device__ __forceinline__ void fetch_state(const typename GlaShape<kKeys>::State& to,
                                            const float* from) {
  using State = typename GlaShape<kKeys>::State;
  constexpr int kPass = GlaShape<kKeys>::kThreads / 16;  // rows
  const int piece = threadIdx.x % 16, first = threadIdx.x / 16;
  const uint32_t place =
      shared_address(to.base) + first * State::kStride + piece % 2 * State::kPlane + piece / 2 * 16;
  from += threadIdx.x * 4;
#pragma unroll
  for (int n = 0; n < kKeys / kPass; ++n)
    copy_async(place + n * kPass * State::kStride, from + n * kPass * kGlaColumns);
}

template <class F> void with_gla_keys(const DiagonalInputs& p, F&& f) {
  diagonal_chunk_keys(p) == 64 ? f(std::integral_constant<int, 64>())
                               : f(std::integral_constant<int, 128>());
}

inline unsigned gla_blocks(const DiagonalInputs& p) {
  const int64_t blocks = kept_states(p, kGlaTokens) * p.H;
  check(blocks < (int64_t(1) << 31), "[diagonal] too many chunks and heads for a grid");
  return unsigned(blocks);
}

// What follows makes the states before every chunk (or the gradients of those after it) in `to`.
void gla_states(const DiagonalForward& p, const GlaStates& to, cudaStream_t stream);
void gla_dstates(const DiagonalBackward& p, const GlaStates& to, cudaStream_t stream);

}  // namespace lrnn::kernels::cuda
