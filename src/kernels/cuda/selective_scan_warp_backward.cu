#include <type_traits>

#include "kernels/cuda/selective_scan_warp_backward.cuh"

namespace lrnn::kernels::cuda {
namespace {

// The sums of a chunk over the warps of the block: four values a thread.
__device__ __forceinline__ void add_warps(const SelectiveScanBackward& p, const Span& span,
                                          int64_t group, int64_t first, int count,
                                          const float4 (*sums)[kScanTile][kScanSums / 4]) {
  static_assert(kScanTile * kScanSums / 4 == 32 * kScanWarps);
  const int t = threadIdx.x / (kScanSums / 4), quad = threadIdx.x % (kScanSums / 4),
            n = quad % 4 * 4;
  float* const to = static_cast<float*>(quad < 4 ? p.dB : p.dC);
  if (t >= count || !to) return;
  float4 sum = sums[0][t][quad];
#pragma unroll
  for (int w = 1; w < kScanWarps; ++w) sum += sums[w][t][quad];
  float* const row = to + ((group * p.batch + span.b) * p.T + span.t0 + first + t) * p.N;
  if (p.N % 4 == 0) {
    if (n < p.N) *reinterpret_cast<float4*>(row + n) = sum;
    return;
  }
  const float all[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (n + i < p.N) row[n + i] = all[i];
}

template <Type kType, bool kNegative>
__global__ void __launch_bounds__(32 * kScanWarps, 4)
    backward(const SelectiveScanBackward p, const ScanWide wide) {
  extern __shared__ __align__(16) unsigned char memory[];
  auto& shared = *reinterpret_cast<WarpBackwardShared*>(memory);
  using Run = WarpBackward<kType, kNegative>;
  Run run(p, wide, shared);
  const WarpPlace& at = run.at;
  const Span& span = run.span;
  const int64_t chunks = (span.length + kScanTile - 1) / kScanTile;
  WarpGiven<kType> given;
  StatePack<kType> states;  // the block's B by one warp, its C by another
  const auto fetch = [&](int64_t first) {
    given.load(p, wide, span, at, first);
    if (at.warp < 2)
      states.load(p, at.warp ? p.C : p.B, span, at, first, at.warp ? wide.C : wide.B);
  };
  if (chunks > 0) fetch((chunks - 1) * kScanTile);
  for (int64_t chunk = chunks - 1; chunk >= 0; --chunk) {
    const int64_t first = chunk * kScanTile;
    const int count = int(min(int64_t(kScanTile), span.length - first));
    typename Run::States h;
    run.load_kept(chunk, h);
    run.fill(given, count);
    if (at.warp < 2) states.store(at.warp ? run.C : run.B, at);
    if (chunk > 0) run.prefetch(chunk - 1);
    __syncthreads();
    run.walk(chunk, count, h, shared.sums[at.warp]);
    WarpGiven<kType> again;  // they had to leave the registers
    again.load(p, wide, span, at, first);
    __syncthreads();
    add_warps(p, span, at.group, first, count, shared.sums);
    if (chunk > 0) fetch(first - kScanTile);
    run.finish(again, first, count);
    __syncwarp();
  }
  if (kNegative) {
#pragma unroll
    for (int i = 0; i < kScanStates; ++i) run.dA[i] *= 2;
  }
  store_own(p.dA, at.s * p.D, p, at, run.dA);
  if (p.dstate) store_own(p.dstate, at.s * p.D, p, at, run.g);
  if (at.row < at.pack) {
    const int64_t d = at.s * p.D + at.first_channel + at.pack_c + at.row;
    static_cast<float*>(p.dskip)[d] = run.dskip, static_cast<float*>(p.dbias)[d] = run.dbias;
  }
}

}  // namespace

void scan_warp_backward(const SelectiveScanBackward& p, void* stream) {
  const ScanWide wide(p, p.du, p.dy);
  with_scan_kind(p, [&](auto type, auto negative) {
    const auto kernel = backward<type.value, negative.value>;
    allow_shared(kernel, sizeof(WarpBackwardShared));
    kernel<<<warp_blocks(p), 32 * kScanWarps, sizeof(WarpBackwardShared),
             static_cast<cudaStream_t>(stream)>>>(p, wide);
  });
}

}  // namespace lrnn::kernels::cuda
