#pragma once
#include <cstdint>

#include "kernels/cuda/tile/fragment.cuh"

// Hopper's asynchronous products of a warp group: 64 rows of A from registers, in the layout of
// four m16k16 fragments, times B from shared memory. The accumulators are laid out as those of
// mma.sync. Tiles are 64 columns wide, 128 bytes a row, swizzled: piece p of row r lies at p ^ (r %
// 8).
namespace lrnn::kernels::cuda::wgmma {

__device__ __forceinline__ void fence() {
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}
__device__ __forceinline__ void commit() {
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}
template <int kLeft> __device__ __forceinline__ void wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kLeft) : "memory");
}
// Makes what this thread wrote to shared memory visible to the products.
__device__ __forceinline__ void publish() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}
// The compiler must not move reads of accumulators across a wait.
template <int kTiles> __device__ __forceinline__ void hold(float (&c)[kTiles][4]) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) asm volatile("" : "+f"(c[t][u])::"memory");
}

constexpr uint64_t kSwizzle128 = 1ull << 62;
// B(k,n) = M[n][k]: eight rows are 1024 bytes, the next 16 values of k 32 bytes on.
__device__ __forceinline__ uint64_t rows_as_n(uint32_t tile) {
  return kSwizzle128 | (uint64_t(1024 >> 4) << 32) | (uint64_t(1) << 16) | (tile & 0x3ffff) >> 4;
}
// B(k,n) = M[k][n]: the next 64 values of n `wide` bytes on, eight rows of k 1024.
__device__ __forceinline__ uint64_t rows_as_k(uint32_t tile, uint32_t wide) {
  return kSwizzle128 | (uint64_t(1024 >> 4) << 32) | (uint64_t(wide >> 4) << 16) |
         (tile & 0x3ffff) >> 4;
}

// One instruction a product; they differ in how many accumulators they name, four a tile. `how` is
// "=f" where the accumulators are only written and "+f" where they are added to: naming as input
// what nobody wrote would keep registers busy.
#define LRNN_TILE(how, t) how(c[t][0]), how(c[t][1]), how(c[t][2]), how(c[t][3])
#define LRNN_FOUR_TILES(how, t) \
  LRNN_TILE(how, t), LRNN_TILE(how, t + 1), LRNN_TILE(how, t + 2), LRNN_TILE(how, t + 3)
#define LRNN_TILES_4(how) LRNN_FOUR_TILES(how, 0)
#define LRNN_TILES_8(how) LRNN_TILES_4(how), LRNN_FOUR_TILES(how, 4)
#define LRNN_TILES_16(how) LRNN_TILES_8(how), LRNN_FOUR_TILES(how, 8), LRNN_FOUR_TILES(how, 12)
#define LRNN_NAMES_4 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define LRNN_NAMES_8 \
  LRNN_NAMES_4       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LRNN_NAMES_16                                                                \
  LRNN_NAMES_8                                                                       \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define LRNN_ASM(columns, tiles, operands, add, orders, how, ...)                                 \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns                                       \
               "k16.f32.bf16.bf16 {" LRNN_NAMES_##tiles "}, " operands ", " add ", 1, 1, " orders \
                                                        ";\n"                                     \
               : LRNN_TILES_##tiles(how)                                                          \
               : __VA_ARGS__)
#define LRNN_WGMMA(columns, tiles, operands, orders, ...)               \
  if constexpr (kFirst)                                                 \
    LRNN_ASM(columns, tiles, operands, "0", orders, "=f", __VA_ARGS__); \
  else                                                                  \
    LRNN_ASM(columns, tiles, operands, "1", orders, "+f", __VA_ARGS__)

// c += a B, or c = a B for kFirst, A from registers; kRowsAreK: B from rows_as_k.
template <bool kRowsAreK, bool kFirst>
__device__ __forceinline__ void multiply(float (&c)[4][4], const uint32_t (&a)[4], uint64_t b) {
  LRNN_WGMMA(32, 4, "{%16,%17,%18,%19}, %20", "%21", "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
             "l"(b), "n"(kRowsAreK ? 1 : 0));
}
template <bool kRowsAreK, bool kFirst>
__device__ __forceinline__ void multiply(float (&c)[8][4], const uint32_t (&a)[4], uint64_t b) {
  LRNN_WGMMA(64, 8, "{%32,%33,%34,%35}, %36", "%37", "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
             "l"(b), "n"(kRowsAreK ? 1 : 0));
}
template <bool kRowsAreK, bool kFirst>
__device__ __forceinline__ void multiply(float (&c)[16][4], const uint32_t (&a)[4], uint64_t b) {
  LRNN_WGMMA(128, 16, "{%64,%65,%66,%67}, %68", "%69", "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
             "l"(b), "n"(kRowsAreK ? 1 : 0));
}

// Both operands from shared memory. A is described as B is: kARowsAreK for A(m,k) = M[k][m].
template <bool kARowsAreK, bool kBRowsAreK, bool kFirst>
__device__ __forceinline__ void multiply(float (&c)[4][4], uint64_t a, uint64_t b) {
  LRNN_WGMMA(32, 4, "%16, %17", "%18, %19", "l"(a), "l"(b), "n"(kARowsAreK ? 1 : 0),
             "n"(kBRowsAreK ? 1 : 0));
}
template <bool kARowsAreK, bool kBRowsAreK, bool kFirst>
__device__ __forceinline__ void multiply(float (&c)[8][4], uint64_t a, uint64_t b) {
  LRNN_WGMMA(64, 8, "%32, %33", "%34, %35", "l"(a), "l"(b), "n"(kARowsAreK ? 1 : 0),
             "n"(kBRowsAreK ? 1 : 0));
}
template <bool kARowsAreK, bool kBRowsAreK, bool kFirst>
__device__ __forceinline__ void multiply(float (&c)[16][4], uint64_t a, uint64_t b) {
  LRNN_WGMMA(128, 16, "%64, %65", "%66, %67", "l"(a), "l"(b), "n"(kARowsAreK ? 1 : 0),
             "n"(kBRowsAreK ? 1 : 0));
}

#undef LRNN_WGMMA
#undef LRNN_ASM
#undef LRNN_NAMES_16
#undef LRNN_NAMES_8
#undef LRNN_NAMES_4
#undef LRNN_TILES_16
#undef LRNN_TILES_8
#undef LRNN_TILES_4
#undef LRNN_FOUR_TILES
#undef LRNN_TILE

}  // namespace lrnn::kernels::cuda::wgmma

// Products over many k. Swizzled tiles of 64 values follow each other.
namespace lrnn::kernels::cuda {

constexpr int kTileBytes = 64 * 128;  // 64 rows of 64 values

// No accumulator yet: where a loop adds to one from the start.
template <int kTiles> __device__ __forceinline__ void clear(float (&x)[kTiles][4]) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) x[t][u] = 0;
  wgmma::hold(x);
}

// acc += A B for all k, or acc = A B for kFirst, B(k,n) = M[n][k] in tiles kBTiles bytes apart.
// kUse: how many parts of A are multiplied, the large first.
template <bool kFirst, int kBTiles, int kUse = 3, int kParts, int kSteps, int kOut>
__device__ __forceinline__ void times_rows(float (&acc)[kOut][4],
                                           const Fragment<kParts> (&a)[kSteps], uint32_t b) {
#pragma unroll
  for (int i = 0; i < (kUse < kParts ? kUse : kParts); ++i)
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      const uint64_t at = wgmma::rows_as_n(b + k / 4 * kBTiles) + k % 4 * 2;
      if (kFirst && i == 0 && k == 0)
        wgmma::multiply<false, true>(acc, a[k].part[i], at);
      else
        wgmma::multiply<false, false>(acc, a[k].part[i], at);
    }
}
// The same with B(k,n) = M[k][n], the next 64 values of n `wide` bytes on.
template <bool kFirst, int kUse = 3, int kParts, int kSteps, int kOut>
__device__ __forceinline__ void times_columns(float (&acc)[kOut][4],
                                              const Fragment<kParts> (&a)[kSteps], uint32_t b,
                                              uint32_t wide) {
#pragma unroll
  for (int i = 0; i < (kUse < kParts ? kUse : kParts); ++i)
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      const uint64_t at = wgmma::rows_as_k(b + k * 16 * 128, wide);
      if (kFirst && i == 0 && k == 0)
        wgmma::multiply<true, true>(acc, a[k].part[i], at);
      else
        wgmma::multiply<true, false>(acc, a[k].part[i], at);
    }
}
// Rows of A times rows of B, both in shared memory, over kColumns values; tiles of B kBTiles apart.
template <bool kFirst, int kColumns, int kBTiles = kTileBytes, int kOut>
__device__ __forceinline__ void rows_by_rows(float (&acc)[kOut][4], uint32_t a, uint32_t b) {
#pragma unroll
  for (int k = 0; k < kColumns / 16; ++k) {
    const uint64_t left = wgmma::rows_as_n(a + k / 4 * kTileBytes) + k % 4 * 2,
                   right = wgmma::rows_as_n(b + k / 4 * kBTiles) + k % 4 * 2;
    if (kFirst && k == 0)
      wgmma::multiply<false, false, true>(acc, left, right);
    else
      wgmma::multiply<false, false, false>(acc, left, right);
  }
}

}  // namespace lrnn::kernels::cuda
