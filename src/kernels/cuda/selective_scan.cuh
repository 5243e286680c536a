#pragma once
#include "kernels/cuda/functions.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/selective_scan.h"
#include "kernels/cuda/sequences.cuh"

// How the kernels of the scan divide the work. A block has one sequence and some channels. kLanes
// neighbouring threads share a channel, and each keeps eight of its states in registers. What is
// needed once per channel and token (softplus, silu, loads and stores) is done for tiles of tokens
// between the steps, eight neighbouring channels a thread, and goes through shared memory.
namespace lrnn::kernels::cuda {

constexpr int kScanThreads = 128, kScanStates = 8, kScanTile = 16;

template <int kLanes> struct ScanShape {
  static constexpr int kChannels = kScanThreads / kLanes, kN = kLanes * kScanStates,
                       kGroups = kChannels / kPack;
};

// Which kind of load is possible where.
struct ScanWide {
  bool u, delta, z, y, dy;
};

// Where a thread stands: in the recurrence, and between the steps.
template <int kLanes> struct ScanPlace {
  using Shape = ScanShape<kLanes>;
  int64_t s, first_channel, d;
  int c, n0;              // its channel in the block, its first state
  int row, pack_c, pack;  // its token of a tile, its first channel there and how many there are

  __device__ __forceinline__ explicit ScanPlace(int64_t D) {
    const int64_t groups = (D + Shape::kChannels - 1) / Shape::kChannels;
    s = blockIdx.x / groups;
    first_channel = (blockIdx.x - s * groups) * Shape::kChannels;
    c = threadIdx.x / kLanes, n0 = threadIdx.x % kLanes * kScanStates;
    d = first_channel + c;
    row = threadIdx.x / Shape::kGroups, pack_c = threadIdx.x % Shape::kGroups * kPack;
    pack = int(min(max(D - first_channel - pack_c, int64_t(0)), int64_t(kPack)));
  }
};

// A tile of B or C, padded with zeros.
template <class R, int kN>
__device__ __forceinline__ void load_tile(R (*to)[kN], const SelectiveScanInputs& p, const Rows& x,
                                          int64_t b, int64_t t0, int count) {
  for (int i = threadIdx.x; i < kScanTile * kN; i += kScanThreads) {
    const int t = i / kN, n = i % kN;
    to[t][n] = x.data && t < count && n < p.N
                   ? load_as<R>(p.type, x.data, row_at(x, b, t0 + t, 0, 0) + n)
                   : R(0);
  }
}

template <class R> __device__ __forceinline__ void load_eight(const R* from, R (&x)[kScanStates]) {
  R a[4], b[4];
  load_four(from, a), load_four(from + 4, b);
#pragma unroll
  for (int i = 0; i < 4; ++i) x[i] = a[i], x[4 + i] = b[i];
}

template <class R> __device__ __forceinline__ void store_eight(R* to, const R (&x)[kScanStates]) {
#pragma unroll
  for (int i = 0; i < kScanStates; ++i) to[i] = x[i];
}

// This thread's part of a wide array [D,N] that begins at `from`; zeros where there is none.
template <class R, int kLanes>
__device__ __forceinline__ void load_states(const void* from, int64_t first,
                                            const SelectiveScanInputs& p,
                                            const ScanPlace<kLanes>& at, R (&x)[kScanStates]) {
#pragma unroll
  for (int i = 0; i < kScanStates; ++i) {
    const int n = at.n0 + i;
    x[i] = from && at.d < p.D && n < p.N ? static_cast<const R*>(from)[(first + at.d) * p.N + n]
                                         : R(0);
  }
}

template <class R, int kLanes>
__device__ __forceinline__ void store_states(void* to, int64_t first, const SelectiveScanInputs& p,
                                             const ScanPlace<kLanes>& at,
                                             const R (&x)[kScanStates]) {
#pragma unroll
  for (int i = 0; i < kScanStates; ++i)
    if (at.d < p.D && at.n0 + i < p.N) static_cast<R*>(to)[(first + at.d) * p.N + at.n0 + i] = x[i];
}

// One element of the wide per-channel arrays.
template <class R> __device__ __forceinline__ R channel(const void* x, int64_t d, bool valid) {
  return x && valid ? static_cast<const R*>(x)[d] : R(0);
}

// h <- a h + x B with a = 2^(dt A2), or 2 a - 1.
template <class R>
__device__ __forceinline__ void scan_step(R (&h)[kScanStates], const R (&A2)[kScanStates], R dt,
                                          R x, const R (&B)[kScanStates], bool negative) {
#pragma unroll
  for (int i = 0; i < kScanStates; ++i) {
    R a = exp2_of(dt * A2[i]);
    if (negative) a = 2 * a - 1;
    h[i] = a * h[i] + x * B[i];
  }
}

// Calls f(kernel shape) for the number of states.
template <class F> void with_scan_lanes(int64_t N, F&& f) {
  if (N <= 2 * kScanStates)
    f(std::integral_constant<int, 2>());
  else
    f(std::integral_constant<int, 16>());
}

template <int kLanes> unsigned scan_blocks(const SelectiveScanInputs& p) {
  const int64_t blocks =
      p.S * ((p.D + ScanShape<kLanes>::kChannels - 1) / ScanShape<kLanes>::kChannels);
  check(blocks < (int64_t(1) << 31), "[selective_scan] too many sequences and channels for a grid");
  return unsigned(blocks);
}

}  // namespace lrnn::kernels::cuda
