#pragma once
#include "kernels/cuda/selective_scan/selective_scan.h"
#include "kernels/cuda/tile/functions.cuh"
#include "kernels/cuda/tile/pack.cuh"
#include "kernels/cuda/tile/sequences.cuh"

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

// Where rows can be loaded and stored 16 bytes at a time; `to` are the results.
struct ScanWide {
  bool u, delta, z, B, C, y, dy;
  ScanWide(const SelectiveScanInputs& p, const Rows& to, const Rows& dto)
      : u(lies_on_packs(p.u, p.type)),
        delta(lies_on_packs(p.delta, p.type)),
        z(lies_on_packs(p.z, p.type)),
        B(lies_on_packs(p.B, p.type)),
        C(lies_on_packs(p.C, p.type)),
        y(lies_on_packs(to, p.type)),
        dy(lies_on_packs(dto, p.type)) {}
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

// Which kernel when: selective_scan_warp.cuh for few states, the kernels of this file otherwise.
inline bool scan_by_warps(const SelectiveScanInputs& p) {
  return p.type != Type::kFloat64 && p.N <= 2 * kScanStates;
}
void scan_warp_forward(const SelectiveScanForward& p, void* stream);
void scan_warp_backward(const SelectiveScanBackward& p, void* stream);
int64_t scan_warp_channels();  // of a block

// Calls f(a zero to compute in, kernel shape) for what is left.
template <class F> void with_scan_lanes(const SelectiveScanInputs& p, F&& f) {
  if (p.type != Type::kFloat64)
    f(float(), std::integral_constant<int, 16>());
  else if (p.N <= 2 * kScanStates)
    f(double(), std::integral_constant<int, 2>());
  else
    f(double(), std::integral_constant<int, 16>());
}

template <int kLanes> unsigned scan_blocks(const SelectiveScanInputs& p) {
  const int64_t blocks =
      p.S * ((p.D + ScanShape<kLanes>::kChannels - 1) / ScanShape<kLanes>::kChannels);
  check(blocks < (int64_t(1) << 31), "[selective_scan] too many sequences and channels for a grid");
  return unsigned(blocks);
}

}  // namespace lrnn::kernels::cuda
