#pragma once
#include "kernels/cuda/delta_product/chunk.h"
#include "kernels/cuda/tile/common.cuh"
#include "kernels/cuda/tile/copy.cuh"
#include "kernels/cuda/tile/fragment.cuh"

// What the chunk kernels share. A chunk is 64 micro-steps; rows of queries exist only where a token
// ends, so they are counted apart: row r of a chunk reads after micro-step place(r).
namespace lrnn::kernels::cuda {

constexpr int kChunk = 64;

struct Queries {
  int64_t token;  // of row 0, within the sequence
  int place, every, rows;
  __device__ __forceinline__ Queries(const DeltaProductInputs& p, int64_t first, int count)
      : token(uint32_t(first) / uint32_t(p.N)),
        place(int(p.N - 1 - (first - token * p.N))),
        every(int(p.N)),
        rows(p.q.data && place < count ? (count - 1 - place) / every + 1 : 0) {}
  __device__ __forceinline__ int64_t at(int r) const { return place + int64_t(r) * every; }
  // The row that reads after micro-step i, or -1.
  __device__ __forceinline__ int row(int i) const {
    const int r = every == 1 ? i - place : (i - place) / every;
    return i >= place && r < rows && at(r) == i ? r : -1;
  }
};

// How many of the two parts that rounding left of T the sweeps on mma.sync multiply: keys of more
// than 128 channels leave no room for the second.
__host__ __device__ constexpr int lo_parts_of_T(int KT) { return KT > 128 ? 1 : 2; }

// sweeps_make_P for the sizes that the Hopper kernels take.
__host__ __device__ constexpr bool makes_P(bool split) { return !split; }

// Per chunk and head, in vectors [kVectorCount][64]: beta, decay up to i, decay after i, scale x
// decay, the gate that applies at i.
enum Vector { kBeta, kBefore, kAfter, kRead, kGate, kVectorCount };
// beta = 0 would lose the error e = D / beta that the gradient of beta needs.
constexpr float kSmallestBeta = 0x1p-60f;

// Asks for rows of bfloat16, `columns` of them from a matrix with row stride `step`; outside,
// zeros.
template <int kColumns>
__device__ __forceinline__ void fetch_rows(uint32_t to, const uint16_t* from, int64_t step,
                                           int rows, int inside, int columns) {
  constexpr int kPieces = kColumns / 8;
  for (int at = threadIdx.x; at < rows * kPieces; at += blockDim.x) {
    const int i = at / kPieces, piece = at % kPieces;
    const bool ok = i < inside && piece * 8 < columns;
    copy_async(to + i * row_bytes(kColumns) + piece * 16, ok ? from + i * step + piece * 8 : from,
               ok);
  }
}
// The same by a team of kTeam threads, this one number `rank`; all columns are there.
template <int kColumns, int kRows, int kTeam>
__device__ __forceinline__ void fetch_rows_by(int rank, uint32_t to, const uint16_t* from,
                                              int64_t step, int inside) {
  constexpr int kPieces = kColumns / 8, kPass = kTeam / kPieces;
  const int piece = rank % kPieces, first = rank / kPieces;
  fetch_pieces<kRows / kPass, kPass * row_bytes(kColumns)>(
      to + first * row_bytes(kColumns) + piece * 16, from + first * step + piece * 8, step * kPass,
      (inside - first + kPass - 1) / kPass);
}
// The same for a number of columns known only now.
__device__ __forceinline__ void fetch_rows(const Matrix& to, const uint16_t* from, int64_t step,
                                           int rows, int inside, int columns) {
  const int pieces = (to.row - row_bytes(0)) / 16;
  for (int i = threadIdx.x / pieces; i < rows; i += blockDim.x / pieces) {
    const int piece = threadIdx.x % pieces;
    if (threadIdx.x >= blockDim.x / pieces * pieces) break;
    const bool ok = i < inside && piece * 8 < columns;
    copy_async(to.at(i, piece * 8), ok ? from + i * step + piece * 8 : from, ok);
  }
}
// A whole matrix [rows,64] that lies in one piece.
__device__ __forceinline__ void fetch_square(uint32_t to, const uint16_t* from, int rows) {
  for (int at = threadIdx.x; at < rows * 8; at += blockDim.x)
    copy_async(to + at / 8 * row_bytes(kChunk) + at % 8 * 16, from + at * 8);
}
__device__ __forceinline__ void fetch_vectors(uint32_t to, const float* from,
                                              int rank = threadIdx.x, int team = blockDim.x) {
  for (int at = rank; at < kVectorCount * kChunk / 4; at += team)
    copy_async(to + at * 16, from + at * 4);
}

// Of the C values (row g, columns 2c and 2c+1) a lane keeps one column and gets its neighbour
// row's: rows (g & ~1), +1 of column 2c + (g & 1), which lie side by side in memory.
__device__ __forceinline__ float2 neighbours(float left, float right) {
  const bool odd = threadIdx.x & 4;
  const float other = __shfl_xor_sync(0xffffffffu, odd ? left : right, 4);
  return odd ? make_float2(other, right) : make_float2(left, other);
}

// Rows g and g+8 of C tiles to [V,K] in bfloat16; `at` is where this lane's first value goes.
template <bool kSplit, int kTiles>
__device__ __forceinline__ void store_state(const float (&S)[kTiles][4], uint16_t* to,
                                            uint16_t* to_lo, int64_t at, int64_t K) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (t * 8 >= K) continue;
      const float x = S[t][2 * half], y = S[t][2 * half + 1];
      const uint32_t packed = pack(x, y);
      *reinterpret_cast<uint32_t*>(to + at + half * 8 * K + t * 8) = packed;
      if constexpr (kSplit)
        *reinterpret_cast<uint32_t*>(to_lo + at + half * 8 * K + t * 8) = pack_lo(x, y, packed);
    }
}

// Columns 8t+2c, +1 of every tile times those of a vector.
template <int kTiles>
__device__ __forceinline__ void scale_columns(float (&x)[kTiles][4], const float* by) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    const float2 f = *reinterpret_cast<const float2*>(by + t * 8 + threadIdx.x % 4 * 2);
    x[t][0] *= f.x, x[t][1] *= f.y, x[t][2] *= f.x, x[t][3] *= f.y;
  }
}

// Columns of K S become those of diag(beta) (V - diag(a) K S): V from rows of `row` bytes at
// `values`, or none.
template <bool kGate>
__device__ __forceinline__ void subtract_from_values(float (&R)[8][4], const float* vectors,
                                                     bool any, uint32_t values, int row) {
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    uint32_t v[4] = {};
    if (any) ldmatrix_transposed(v, values + n * 16 * row);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float(&x)[4] = R[2 * n + half];
      const int i = (2 * n + half) * 8 + 2 * (threadIdx.x % 4);
      const float2 beta = *reinterpret_cast<const float2*>(vectors + kBeta * kChunk + i);
      float2 before = make_float2(1, 1);
      if constexpr (kGate)
        before = *reinterpret_cast<const float2*>(vectors + kBefore * kChunk + i);
      x[0] = beta.x * (low_of(v[2 * half]) - before.x * x[0]);
      x[1] = beta.y * (high_of(v[2 * half]) - before.y * x[1]);
      x[2] = beta.x * (low_of(v[2 * half + 1]) - before.x * x[2]);
      x[3] = beta.y * (high_of(v[2 * half + 1]) - before.y * x[3]);
    }
  }
}
template <int kTiles> __device__ __forceinline__ void scale(float (&x)[kTiles][4], float by) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) x[t][u] *= by;
}
// The same where nothing may have been forgotten. Without a gate that saves the work, and behind
// the branch the compiler no longer keeps a second copy of x: at K = 256 that copy spills.
template <int kTiles> __device__ __forceinline__ void decay(float (&x)[kTiles][4], float by) {
  if (by != 1) scale(x, by);
}

// dlog a of the tokens that begin in a chunk, from slope(i) of its micro-steps and what comes after
// them: a warp's work, two micro-steps a lane.
template <class Slope>
__device__ __forceinline__ void sum_up_gates(const DeltaProductBackward& p, Span span,
                                             const Slot& at, int64_t h, float at_end,
                                             Slope&& slope) {
  const int lane = threadIdx.x % 32, i = 2 * lane;
  const float left = i < at.count ? slope(i) : 0.f, right = i + 1 < at.count ? slope(i + 1) : 0.f;
  float x = left + right;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const float later = __shfl_down_sync(0xffffffffu, x, d);
    if (lane + d < 32) x += later;
  }
  float after = __shfl_down_sync(0xffffffffu, x, 1);
  after = lane < 31 ? after + at_end : at_end;
  const float sums[2] = {left + (right + after), right + after};
  // Micro-steps since a token began, and how many tokens those are: half a micro-step away from the
  // next whole number, so a reciprocal will do.
  const int N = int(p.N);
  const int64_t token = N == 1 ? at.first : uint32_t(at.first) / uint32_t(N);
  const int since = i + int(at.first - token * N);
  const float each = reciprocal(float(N));
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    const int tokens = int((float(since + u) + 0.5f) * each);
    if (i + u < at.count && tokens * N == since + u)
      static_cast<float*>(p.dlog_gate)[(span.b * p.T + span.t0 + token + tokens) * p.H + h] =
          sums[u];
  }
}

}  // namespace lrnn::kernels::cuda
