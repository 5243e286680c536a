#pragma once
#include "kernels/cuda/mlstm/hopper.cuh"
#include "kernels/cuda/tile/wgmma.cuh"

// What a block of a walk (hopper_walk.cuh) has in shared memory, and how the blocks of a cluster
// speak to each other.
namespace lrnn::kernels::cuda {

// A row of sums in shared memory: what is read of 64 columns, then one number (n . q) or four.
constexpr int kSumStride = 68;

__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;\n" ::: "memory");
}
// From shared memory of another block of the cluster.
__device__ __forceinline__ float4 load_remote(uint32_t at, int rank) {
  float4 x;
  asm volatile(
      "{\n.reg .b32 a;\nmapa.shared::cluster.u32 a, %4, %5;\n"
      "ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [a];\n}\n"
      : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
      : "r"(at), "r"(rank)
      : "memory");
  return x;
}

// The first half of the sums stays in half of the lanes, the other goes to those that keep it.
template <int kHalf> __device__ __forceinline__ void fold(float (&x)[16], int lane) {
  const bool upper = lane & 2 * kHalf;
#pragma unroll
  for (int i = 0; i < kHalf; ++i) {
    const float sent = upper ? x[i] : x[i + kHalf], kept = upper ? x[i + kHalf] : x[i];
    x[i] = kept + __shfl_xor_sync(0xffffffffu, sent, 2 * kHalf);
  }
}

template <int kDepth_> struct WalkShape {
  static constexpr int kDepth = kDepth_, kGroups = 2, kThreads = 128 * kGroups,
                       kOwn = kDepth / kGroups,  // depth of a warp group
      kSteps = kOwn / 16, kTiles = kOwn / 8, kPasses = 64 * 16 / kThreads,
                       kBlocks = kDepth == 64 ? 2 : 1;  // on a processor
  // Two stages hold reads and keys, 64 columns a tile, then values; then what is there once.
  static constexpr int kReads = 0, kKeys = kDepth / 64 * kTileBytes, kValues = 2 * kKeys,
                       kStage = kValues + kTileBytes, kPairsAt = 2 * kStage,
                       kWith = kPairsAt + kPairBytes, kSums = kWith + kTileBytes,
                       kNumbers = kSums + kGroups * 64 * kSumStride * 4;
  // Numbers of a stage: those of the chunk, then what it adds to n or to n's gradient (kRow: of 64
  // columns; for dq n itself).
  static constexpr int kSlope = kRecords * 64, kRow = kSlope + kSlopes * 64, kVector = kRow + 64,
                       kNumbersEach = kVector + kDepth, kCarried = kNumbers + 2 * kNumbersEach * 4,
                       kBarriers = kCarried + kDepth * 4, kBytes = kBarriers + 3 * 8;
};

}  // namespace lrnn::kernels::cuda
