#pragma once
#include "kernels/cuda/chunk.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/mma.cuh"

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
};

// Per chunk and head, in vectors [4][64]:
enum Vector { kBeta, kBefore, kAfter, kRead };  // beta, decay up to i, decay after i, scale x decay

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
// The same for a number of columns known only now.
__device__ __forceinline__ void fetch_rows(uint32_t to, const uint16_t* from, int64_t step,
                                           int rows, int inside, int width, int columns) {
  const int pieces = width / 8;
  for (int i = threadIdx.x / pieces; i < rows; i += blockDim.x / pieces) {
    const int piece = threadIdx.x % pieces;
    if (threadIdx.x >= blockDim.x / pieces * pieces) break;
    const bool ok = i < inside && piece * 8 < columns;
    copy_async(to + i * row_bytes(width) + piece * 16, ok ? from + i * step + piece * 8 : from, ok);
  }
}
// A whole matrix [rows,64] that lies in one piece.
__device__ __forceinline__ void fetch_square(uint32_t to, const uint16_t* from, int rows) {
  for (int at = threadIdx.x; at < rows * 8; at += blockDim.x)
    copy_async(to + at / 8 * row_bytes(kChunk) + at % 8 * 16, from + at * 8);
}
__device__ __forceinline__ void fetch_vectors(uint32_t to, const float* from) {
  for (int at = threadIdx.x; at < 4 * kChunk / 4; at += blockDim.x)
    copy_async(to + at * 16, from + at * 4);
}

// Of the C values (row g, columns 2c and 2c+1) a lane keeps one column and gets its neighbour
// row's: rows (g & ~1), +1 of column 2c + (g & 1), which lie side by side in memory.
__device__ __forceinline__ float2 neighbours(float left, float right) {
  const bool odd = threadIdx.x & 4;
  const float other = __shfl_xor_sync(0xffffffffu, odd ? left : right, 4);
  return odd ? make_float2(other, right) : make_float2(left, other);
}

}  // namespace lrnn::kernels::cuda
