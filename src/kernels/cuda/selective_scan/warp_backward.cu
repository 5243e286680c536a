#include <type_traits>

#include "kernels/cuda/selective_scan/warp_backward.cuh"

// The gradients of the selective scan for up to 16 states: the kernel, its sums over warps and the
// launch. warp_backward.cuh has what a warp does.
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

template <Type kType, bool kNegative, bool kGated>
__global__ void __launch_bounds__(32 * kScanWarps, kBackwardBlocks)
    backward(const SelectiveScanBackward p, const ScanWide wide) {
  extern __shared__ __align__(16) unsigned char memory[];
  auto& shared = *reinterpret_cast<WarpBackwardShared*>(memory);
  using Run = WarpBackward<kType, kNegative, kGated>;
  Run run(p, wide, shared);
  const WarpPlace& at = run.at;
  const Span& span = run.span;
  int64_t first = (span.length - 1) / kScanTile * kScanTile;  // of the chunk
  typename Run::Given given;
  StatePack<kType> states;  // the block's B by one warp, its C by another
  const auto fetch = [&](int64_t first) {
    run.load(given, first);
    if (at.warp < 2)
      states.load(p, at.warp ? p.C : p.B, span, at, first, at.warp ? wide.C : wide.B);
  };
  if (span.length > 0) fetch(first);
  int count = int(span.length - first);
  for (; span.length > 0 && first >= 0; first -= kScanTile) {
    typename Run::States h;
    load_eight(run.kept, h);
    run.fill(given, count);
    if (at.warp < 2) states.store(at.warp ? run.C : run.B, at);
    if (first > 0) run.prefetch(first - kScanTile);
    __syncthreads();
    run.walk(count, h, shared.sums[at.warp]);
    typename Run::Given again;
    run.load_again(again, first);
    __syncthreads();
    add_warps(p, span, at.group, first, count, shared.sums);
    if (first > 0) fetch(first - kScanTile);
    run.finish(again, first, count);
    __syncwarp();
    run.kept -= p.D * kWarpStates, count = kScanTile;
  }
  if (kNegative) {
#pragma unroll
    for (int i = 0; i < kScanStates; ++i) run.dA[i] *= 2;
  }
  store_own(p.dA, at.s * p.D, p, at, run.dA);
  if (p.dstate) store_own(p.dstate, at.s * p.D, p, at, run.g);
  const int64_t d = at.first_channel + at.own;
  if (d < p.D) static_cast<float*>(at.half ? p.dbias : p.dskip)[at.s * p.D + d] = run.over_tokens;
}

}  // namespace

void scan_warp_backward(const SelectiveScanBackward& p, void* stream) {
  const ScanWide wide(p, p.du, p.dy);
  const auto launch = [&](auto kernel) {
    allow_shared(kernel, sizeof(WarpBackwardShared));
    kernel<<<warp_blocks(p), 32 * kScanWarps, sizeof(WarpBackwardShared),
             static_cast<cudaStream_t>(stream)>>>(p, wide);
  };
  with_scan_kind(p, [&](auto type, auto negative) {
    p.z.data ? launch(backward<type.value, negative.value, true>)
             : launch(backward<type.value, negative.value, false>);
  });
}

}  // namespace lrnn::kernels::cuda
