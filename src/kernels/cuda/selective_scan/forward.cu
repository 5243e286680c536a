#include <type_traits>

#include "kernels/cuda/selective_scan/selective_scan.cuh"

// The selective scan of Mamba (ops/selective_scan/selective_scan.h), token after token, for any
// number of states: the lanes of a channel share them.
namespace lrnn::kernels::cuda {
namespace {

template <class R, int kLanes>
__global__ void __launch_bounds__(kScanThreads)
    forward(const SelectiveScanForward p, const ScanWide wide) {
  using Shape = ScanShape<kLanes>;
  __shared__ alignas(16) R step[kScanTile][Shape::kChannels], input[kScanTile][Shape::kChannels],
      read[kScanTile][Shape::kChannels];
  __shared__ alignas(16) R B[kScanTile][Shape::kN], C[kScanTile][Shape::kN];
  const ScanPlace<kLanes> at(p.D);
  const Span span = span_of(p, at.s);
  const bool outputs = p.C.data != nullptr, own = at.row < kScanTile && at.pack > 0;
  const int64_t pack_d = at.first_channel + at.pack_c;
  R h[kScanStates], A2[kScanStates];
  load_states(p.A, 0, p, at, A2);
  load_states(p.state, at.s * p.D, p, at, h);
#pragma unroll
  for (int i = 0; i < kScanStates; ++i) A2[i] *= kLog2e<R>;
  R* kept = p.states ? static_cast<R*>(p.states) +
                           (first_kept(p, at.s, kScanTile) * p.D + at.d) * Shape::kN + at.n0
                     : nullptr;
  Pack<R> u, delta, z, next_u, next_delta, next_z;
  const auto fetch = [&](int64_t first) {
    const int64_t t = span.t0 + first + at.row;
    if (!own || first + at.row >= span.length) return;
    next_u.load(p.type, p.u.data, row_at(p.u, span.b, t, 0, 0) + pack_d, at.pack, wide.u);
    next_delta.load(p.type, p.delta.data, row_at(p.delta, span.b, t, 0, 0) + pack_d, at.pack,
                    wide.delta);
    if (p.z.data)
      next_z.load(p.type, p.z.data, row_at(p.z, span.b, t, 0, 0) + pack_d, at.pack, wide.z);
  };
  fetch(0);
  for (int64_t first = 0; first < span.length; first += kScanTile) {
    const int count = int(min(int64_t(kScanTile), span.length - first));
    const bool token = own && at.row < count;
    u = next_u, delta = next_delta, z = next_z;
    if (token) {
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        R dt = delta.get(p.type, i) + channel<R>(p.delta_bias, pack_d + i, i < at.pack);
        if (p.softplus) dt = softplus(dt);
        step[at.row][at.pack_c + i] = dt;
        input[at.row][at.pack_c + i] = dt * u.get(p.type, i);
      }
    }
    load_tile(B, p, p.B, span.b, span.t0 + first, count);
    load_tile(C, p, p.C, span.b, span.t0 + first, count);
    __syncthreads();
    if (first + kScanTile < span.length) fetch(first + kScanTile);
    if (kept) {
      if (at.d < p.D) store_eight(kept, h);
      kept += p.D * Shape::kN;
    }
#pragma unroll 4
    for (int t = 0; t < count; ++t) {
      R b[kScanStates], c[kScanStates], y = 0;
      load_eight(&B[t][at.n0], b);
      scan_step(h, A2, step[t][at.c], input[t][at.c], b, p.negative);
      if (!outputs) continue;
      load_eight(&C[t][at.n0], c);
#pragma unroll
      for (int i = 0; i < kScanStates; ++i) y += c[i] * h[i];
      y = sum_lanes<kLanes>(y);
      if (at.n0 == 0) read[t][at.c] = y;
    }
    __syncthreads();
    if (!outputs || !token) continue;
    R y[kPack];
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      y[i] = read[at.row][at.pack_c + i] +
             channel<R>(p.skip, pack_d + i, i < at.pack) * u.get(p.type, i);
      if (p.z.data) y[i] *= silu(z.get(p.type, i));
    }
    store_pack(p.type, p.y.data, row_at(p.y, span.b, span.t0 + first + at.row, 0, 0) + pack_d,
               at.pack, wide.y, y);
  }
  store_states(p.final_state, at.s * p.D, p, at, h);
}

}  // namespace

int64_t scan_kept(const SelectiveScanInputs& p) { return kept_states(p, kScanTile); }

int64_t scan_padded(int64_t N) { return N <= 2 * kScanStates ? 2 * kScanStates : 16 * kScanStates; }

int64_t scan_groups(const SelectiveScanInputs& p) {
  const int64_t channels =
      scan_by_warps(p) ? scan_warp_channels() : kScanThreads / (scan_padded(p.N) / kScanStates);
  return (p.D + channels - 1) / channels;
}

void scan_forward(const SelectiveScanForward& p, void* stream) {
  if (p.S == 0 || p.D == 0) return;
  if (scan_by_warps(p)) {
    scan_warp_forward(p, stream);
    return check_launch("selective_scan");
  }
  const ScanWide wide(p, p.y, Rows());
  with_scan_lanes(p, [&](auto zero, auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    forward<decltype(zero), kLanes>
        <<<scan_blocks<kLanes>(p), kScanThreads, 0, static_cast<cudaStream_t>(stream)>>>(p, wide);
  });
  check_launch("selective_scan");
}

}  // namespace lrnn::kernels::cuda
