#pragma once
#include "kernels/cuda/chunk.cuh"
#include "kernels/cuda/wgmma.cuh"

// What the Hopper sweeps share. A warp group keeps 64 columns of the state as rows of its
// transpose.
namespace lrnn::kernels::cuda {

constexpr int kTileBytes = kChunk * 128;  // 64 rows of 64 values

// Asks for rows as swizzled tiles of 64 columns, `kRows` rows each; outside, zeros. The threads
// pass over the rows a multiple of eight at a time, so each keeps its place in the swizzle.
template <int kColumns, int kRows>
__device__ __forceinline__ void fetch_tiles(uint32_t to, const uint16_t* from, int64_t step,
                                            int inside, int columns) {
  constexpr int kPieces = kColumns / 8;
  const int piece = threadIdx.x % kPieces, first = threadIdx.x / kPieces;
  const int pass = blockDim.x / kPieces;
  const int64_t stride = step * pass;
  from += first * step + piece * 8;
  to += piece / 8 * kRows * 128 + first * 128 + ((piece ^ first) & 7) * 16;
  if (piece * 8 >= columns) inside = 0;
#pragma unroll 4
  for (int i = first; i < kRows; i += pass) {
    copy_async(to, from, i < inside);
    to += pass * 128, from += stride;
  }
}
template <int kRows> __device__ __forceinline__ void fetch_tile(uint32_t to, const uint16_t* from) {
  fetch_tiles<64, kRows>(to, from, 64, kRows, 64);
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

// acc += A B for all k, or acc = A B for kFirst; the tiles of B follow each other, 64 values of k
// in each.
template <bool kFirst, int kBTiles, int kSteps, int kOut>
__device__ __forceinline__ void times_rows(float (&acc)[kOut][4], const uint32_t (&a)[kSteps][4],
                                           uint32_t b) {
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    const uint64_t at = wgmma::rows_as_n(b + k / 4 * kBTiles) + k % 4 * 2;
    if (kFirst && k == 0)
      wgmma::multiply<false, true>(acc, a[k], at);
    else
      wgmma::multiply<false, false>(acc, a[k], at);
  }
}
template <bool kFirst, int kSteps, int kOut>
__device__ __forceinline__ void times_columns(float (&acc)[kOut][4], const uint32_t (&a)[kSteps][4],
                                              uint32_t b, uint32_t wide) {
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    const uint64_t at = wgmma::rows_as_k(b + k * 16 * 128, wide);
    if (kFirst && k == 0)
      wgmma::multiply<true, true>(acc, a[k], at);
    else
      wgmma::multiply<true, false>(acc, a[k], at);
  }
}

template <bool kSplit, int kSteps>
__device__ __forceinline__ void as_operands(uint32_t (&hi)[kSteps][4], uint32_t (&lo)[kSteps][4],
                                            const float (&x)[2 * kSteps][4]) {
#pragma unroll
  for (int k = 0; k < kSteps; ++k) as_operand<kSplit>(hi[k], lo[k], x[2 * k], x[2 * k + 1]);
}

// A state [K,V] in float32 to and from rows v0+g, v0+g+8 of its transpose.
template <int kTiles>
__device__ __forceinline__ void read_state(float (&S)[kTiles][4], const float* from, int64_t K,
                                           int64_t V, int64_t v) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int64_t k = t * 8 + threadIdx.x % 4 * 2 + u % 2;
      S[t][u] = from && k < K ? from[k * V + v + u / 2 * 8] : 0.f;
    }
}
template <int kTiles>
__device__ __forceinline__ void write_state(const float (&S)[kTiles][4], float* to, int64_t K,
                                            int64_t V, int64_t v) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int64_t k = t * 8 + threadIdx.x % 4 * 2 + u % 2;
      if (k < K) to[k * V + v + u / 2 * 8] = S[t][u];
    }
}
// --------------------------------------------------------------------------------------- stores
// Results leave through shared memory and the copy engine: stores of four bytes from every lane
// would fill the queue of the memory unit. A thread's copies are counted in groups, as they are
// issued.
__device__ __forceinline__ void stmatrix(uint32_t to, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};\n" ::"r"(to),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}
__device__ __forceinline__ void stmatrix_transposed(uint32_t to, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};\n" ::"r"(to),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}
__device__ __forceinline__ void send(void* to, uint32_t from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n" ::"l"(to), "r"(from),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void send_commit() {
  asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");
}
// All but the last kLeft groups of this thread have been read from shared memory.
template <int kLeft> __device__ __forceinline__ void send_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(kLeft) : "memory");
}
// The 128 threads of a warp group.
__device__ __forceinline__ void meet_group() {
  asm volatile("bar.sync %0, 128;\n" ::"r"(1 + threadIdx.x / 128) : "memory");
}

// The operand of a state to [V,K] in bfloat16: `to` is row v0 of the warp's 16, `room` its 16
// padded rows of shared memory.
template <int kSteps>
__device__ __forceinline__ void send_state(const uint32_t (&a)[kSteps][4], uint16_t* to, int64_t K,
                                           uint32_t room) {
  constexpr int KT = kSteps * 16;
  const int lane = threadIdx.x % 32;
  const uint32_t at = room + lane_transposed(row_bytes(KT));
#pragma unroll
  for (int k = 0; k < kSteps; ++k) stmatrix(at + k * 32, a[k]);
  wgmma::publish();
  __syncwarp();
  if (lane < 16) send(to + lane * K, room + lane * row_bytes(KT), int(K) * 2);
}

// Columns of C tiles as rows of bfloat16 in this warp's 16 columns of a tile [8 kTiles, 64].
template <int kTiles>
__device__ __forceinline__ void put_columns(const float (&x)[kTiles][4], uint32_t tile) {
  const uint32_t at = tile + lane_direct(row_bytes(64)) + threadIdx.x / 32 % 4 * 32;
#pragma unroll
  for (int n = 0; n < kTiles / 2; ++n) {
    const uint32_t r[4] = {pack(x[2 * n][0], x[2 * n][1]), pack(x[2 * n][2], x[2 * n][3]),
                           pack(x[2 * n + 1][0], x[2 * n + 1][1]),
                           pack(x[2 * n + 1][2], x[2 * n + 1][3])};
    stmatrix_transposed(at + n * 16 * row_bytes(64), r);
  }
}
// Row i < rows of that tile to `to` + i step, one thread a row; `i` is this thread's.
__device__ __forceinline__ void send_rows(uint16_t* to, int64_t step, uint32_t tile, int i,
                                          int rows) {
  if (i >= 0 && i < rows) send(to + i * step, tile + i * row_bytes(64), 128);
}

}  // namespace lrnn::kernels::cuda
