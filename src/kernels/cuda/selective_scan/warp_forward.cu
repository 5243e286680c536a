#include <type_traits>

#include "kernels/cuda/selective_scan/warp.cuh"

// Every warp works for itself; the next tile is on its way while this one is walked through.
namespace lrnn::kernels::cuda {
namespace {

struct Shared {
  alignas(16) StepTile steps;
  alignas(16) StateTile B, C;
  alignas(16) ChannelTile read;  // C . h
};

template <Type kType, bool kNegative>
__global__ void __launch_bounds__(32 * kScanWarps, 4)
    forward(const SelectiveScanForward p, const ScanWide wide) {
  __shared__ Shared all[kScanWarps];
  const WarpPlace at(p.D);
  Shared& tile = all[at.warp];
  const Span span = span_of(p, at.s);
  float h[kScanStates], A2[kScanStates], bias[kPack], skip[kPack];
  load_own(p.A, 0, p, at, A2);
  load_own(p.state, at.s * p.D, p, at, h);
#pragma unroll
  for (int i = 0; i < kScanStates; ++i) A2[i] *= kLog2e<float>;
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    const int64_t d = at.first_channel + at.pack_c + i;
    bias[i] = channel<float>(p.delta_bias, d, i < at.pack);
    skip[i] = channel<float>(p.skip, d, i < at.pack);
  }
  const int64_t own = at.first_channel + at.own;
  float* kept = p.states ? static_cast<float*>(p.states) +
                               (first_kept(p, at.s, kScanTile) * p.D + own) * kWarpStates +
                               at.half * kScanStates
                         : nullptr;
  ChannelPack<kType> u, z, next_u, next_delta, next_z;
  StatePack<kType> next_B, next_C;
  const auto fetch = [&](int64_t first) {
    next_u.load(p.u, span, at, first, wide.u);
    next_delta.load(p.delta, span, at, first, wide.delta);
    next_z.load(p.z, span, at, first, wide.z);
    next_B.load(p, p.B, span, at, first, wide.B);
    next_C.load(p, p.C, span, at, first, wide.C);
  };
  fetch(0);
  for (int64_t first = 0; first < span.length; first += kScanTile) {
    const int count = int(min(int64_t(kScanTile), span.length - first));
    float dt[kPack], x[kPack];
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      dt[i] = next_delta[i] + bias[i];
      if (p.softplus) dt[i] = softplus(dt[i]);
      if (at.row >= count) dt[i] = 0;  // a step of nothing: h stays as it is
      x[i] = dt[i] * next_u[i];
    }
    store_steps(tile.steps, at, dt, x);
    next_B.store(tile.B, at), next_C.store(tile.C, at);
    u = next_u, z = next_z;
    if (first + kScanTile < span.length) fetch(first + kScanTile);
    if (kept) {
      if (own < p.D) store_vector(kept, h);
      kept += p.D * kWarpStates;
    }
    __syncwarp();
    for (int begin = 0; begin < count; begin += 4) {
#pragma unroll
      for (int t = begin; t < begin + 4; ++t) {
        float c[kScanStates], y = 0;
        load_eight(&tile.C[t][at.half * kScanStates], c);
        warp_step<kNegative>(h, A2, tile.steps, tile.B, t, at);
#pragma unroll
        for (int i = 0; i < kScanStates; ++i) y = fmaf(c[i], h[i], y);
        y = sum_halves(y);
        if (at.half == 0) tile.read[t][at.own] = y;
      }
    }
    __syncwarp();
    if (!p.C.data || at.row >= count || at.pack == 0) continue;
    float y[kPack];
    load_eight(&tile.read[at.row][at.pack_c], y);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      y[i] = fmaf(skip[i], u[i], y[i]);
      if (p.z.data) y[i] *= silu(z[i]);
    }
    store_pack(kType, p.y.data,
               row_at(p.y, span.b, span.t0 + first + at.row, 0, 0) + at.first_channel + at.pack_c,
               at.pack, wide.y, y);
  }
  store_own(p.final_state, at.s * p.D, p, at, h);
}

}  // namespace

int64_t scan_warp_channels() { return kWarpBlock; }

void scan_warp_forward(const SelectiveScanForward& p, void* stream) {
  const ScanWide wide(p, p.y, Rows());
  with_scan_kind(p, [&](auto type, auto negative) {
    forward<type.value, negative.value>
        <<<warp_blocks(p), 32 * kScanWarps, 0, static_cast<cudaStream_t>(stream)>>>(p, wide);
  });
}

}  // namespace lrnn::kernels::cuda
