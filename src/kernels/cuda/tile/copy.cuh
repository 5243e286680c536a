#pragma once
#include <cstdint>

// Copies from memory to shared memory that go on while the threads do (cp.async), 16 bytes each.
namespace lrnn::kernels::cuda {

__device__ __forceinline__ void copy_async(uint32_t to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to), "l"(from));
}
// Zeros where `inside` is false; nothing is read then.
__device__ __forceinline__ void copy_async(uint32_t to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from),
               "r"(inside ? 16 : 0));
}
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;\n"); }
template <int kLeft> __device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kLeft));
}

// kCount copies of 16 bytes, kTo bytes apart in shared memory and `stride` values in memory; zeros
// from number `inside` on.
template <int kCount, int kTo>
__device__ __forceinline__ void fetch_pieces(uint32_t to, const uint16_t* from, int64_t stride,
                                             int inside) {
  if (inside >= kCount) {
#pragma unroll
    for (int n = 0; n < kCount; ++n) {
      copy_async(to + n * kTo, from);
      from += stride;
    }
  } else {
#pragma unroll 1
    for (int n = 0; n < kCount; ++n) {
      copy_async(to + n * kTo, from, n < inside);
      from += stride;
    }
  }
}

// Asks for rows as swizzled tiles of 64 columns, `kRows` rows each; outside, zeros. The kTeam
// threads that share the work pass over the rows a multiple of eight at a time, so each keeps its
// place in the swizzle.
template <int kColumns, int kRows, int kTeam>
__device__ __forceinline__ void fetch_tiles(int rank, uint32_t to, const uint16_t* from,
                                            int64_t step, int inside, int columns) {
  constexpr int kPieces = kColumns / 8, kPass = kTeam / kPieces;
  static_assert(kPass % 8 == 0 && kRows % kPass == 0);
  const int piece = rank % kPieces, first = rank / kPieces;
  fetch_pieces<kRows / kPass, kPass * 128>(
      to + piece / 8 * kRows * 128 + first * 128 + ((piece ^ first) & 7) * 16,
      from + first * step + piece * 8, step * kPass,
      piece * 8 < columns ? (inside - first + kPass - 1) / kPass : 0);
}

}  // namespace lrnn::kernels::cuda
