#include <type_traits>

#include "kernels/cuda/selective_scan/selective_scan.cuh"

// Chunks from the last to the first, in parts. The states of a part are computed again, from the
// one that forward kept at the chunk's beginning, and stay in registers: four tokens' worth, so
// that four blocks fit on a processor. Sums over channels (dB, dC) are taken in a warp, then over
// the warps of the block, in a fixed order.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kPart = 4, kWarps = kScanThreads / 32;

template <class R, int kLanes> struct Shared {
  using Shape = ScanShape<kLanes>;
  // Per token and channel: dt, dt u and the gradient of the sum that C reads; afterwards the sums
  // over states of g B, of g h' e A and of C h.
  alignas(16) R step[kScanTile][Shape::kChannels];
  alignas(16) R input[kScanTile][Shape::kChannels];
  alignas(16) R dread[kScanTile][Shape::kChannels];
  alignas(16) R B[kScanTile][Shape::kN];
  alignas(16) R C[kScanTile][Shape::kN];
  R sums[kWarps][kScanTile][2 * Shape::kN];  // of dB, then dC, over the channels of a warp
  R dskip[kScanTile][Shape::kChannels];      // of the tokens of one row of the tiles
  R dbias[kScanTile][Shape::kChannels];
};

// Sums of sixteen values over the channels of a warp. Each step halves the values that a thread
// has left; the result are kLanes / 2 of them, at v[0..], beginning with number `which`. A template
// and no loop: all numbers of registers are known.
template <int kLanes, int kDistance = 16, int kHalfLeft = kScanStates, class R>
__device__ __forceinline__ int sum_channels(R (&v)[2 * kScanStates], int which = 0) {
  if constexpr (kDistance >= kLanes) {
    const bool upper = threadIdx.x & kDistance;
#pragma unroll
    for (int i = 0; i < kHalfLeft; ++i) {
      const R send = upper ? v[i] : v[i + kHalfLeft], keep = upper ? v[i + kHalfLeft] : v[i];
      v[i] = keep + __shfl_xor_sync(0xffffffffu, send, kDistance);
    }
    return sum_channels<kLanes, kDistance / 2, kHalfLeft / 2>(v, upper ? which + kHalfLeft : which);
  } else {
    return which;
  }
}

// What the four rows hold at a thread's own channels and token.
template <class R> struct Own {
  Pack<R> u, delta, z, dy;

  template <int kLanes>
  __device__ __forceinline__ void load(const SelectiveScanBackward& p, const ScanWide& wide,
                                       const ScanPlace<kLanes>& at, int64_t b, int64_t t) {
    const int64_t d = at.first_channel + at.pack_c;
    u.load(p.type, p.u.data, row_at(p.u, b, t, 0, 0) + d, at.pack, wide.u);
    delta.load(p.type, p.delta.data, row_at(p.delta, b, t, 0, 0) + d, at.pack, wide.delta);
    if (p.z.data) z.load(p.type, p.z.data, row_at(p.z, b, t, 0, 0) + d, at.pack, wide.z);
    if (p.dy.data) dy.load(p.type, p.dy.data, row_at(p.dy, b, t, 0, 0) + d, at.pack, wide.dy);
  }
  // Before the softplus.
  __device__ __forceinline__ R raw_step(const SelectiveScanBackward& p, int i, R bias) const {
    return delta.get(p.type, i) + bias;
  }
  __device__ __forceinline__ R dread(const SelectiveScanBackward& p, int i) const {
    if (!p.dy.data) return R(0);
    return p.z.data ? dy.get(p.type, i) * silu(z.get(p.type, i)) : dy.get(p.type, i);
  }
};

template <class R, int kLanes>
__device__ __forceinline__ void fill(Shared<R, kLanes>& shared, const SelectiveScanBackward& p,
                                     const ScanWide& wide, const ScanPlace<kLanes>& at,
                                     const Span& span, int64_t first, int count) {
  if (at.row < kScanTile) {
    const int64_t d = at.first_channel + at.pack_c;
    const bool token = at.pack > 0 && at.row < count;
    Own<R> own;
    if (token) own.load(p, wide, at, span.b, span.t0 + first + at.row);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      R dt = 0, x = 0, dread = 0;  // a step of nothing: h and its gradient stay as they are
      if (token && i < at.pack) {
        dt = own.raw_step(p, i, channel<R>(p.delta_bias, d + i, true));
        if (p.softplus) dt = softplus(dt);
        x = dt * own.u.get(p.type, i), dread = own.dread(p, i);
      }
      shared.step[at.row][at.pack_c + i] = dt, shared.input[at.row][at.pack_c + i] = x;
      shared.dread[at.row][at.pack_c + i] = dread;
    }
  }
  load_tile(shared.B, p, p.B, span.b, span.t0 + first, count);
  load_tile(shared.C, p, p.C, span.b, span.t0 + first, count);
}

// The gradients of a thread's own channels and token, from the sums over states.
template <class R, int kLanes>
__device__ __forceinline__ void finish(Shared<R, kLanes>& shared, const SelectiveScanBackward& p,
                                       const ScanWide& wide, const ScanPlace<kLanes>& at,
                                       const Span& span, int64_t first) {
  const int64_t d = at.first_channel + at.pack_c, t = span.t0 + first + at.row;
  Own<R> own;
  own.load(p, wide, at, span.b, t);
  R du[kPack], ddelta[kPack], dz[kPack];
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    const bool valid = i < at.pack;
    const R skip = channel<R>(p.skip, d + i, valid), u = own.u.get(p.type, i);
    const R raw = own.raw_step(p, i, channel<R>(p.delta_bias, d + i, valid));
    const R dt = p.softplus ? softplus(raw) : raw, dread = own.dread(p, i);
    const int c = at.pack_c + i;
    const R along = shared.input[at.row][c], read = shared.dread[at.row][c];
    du[i] = skip * dread + dt * along;
    ddelta[i] = u * along + shared.step[at.row][c];
    if (p.softplus) ddelta[i] *= softplus_slope(raw);
    if (p.z.data && p.dy.data)
      dz[i] = own.dy.get(p.type, i) * (read + skip * u) * silu_slope(own.z.get(p.type, i));
    shared.dskip[at.row][c] += dread * u;
    shared.dbias[at.row][c] += ddelta[i];
  }
  store_pack(p.type, p.du.data, row_at(p.du, span.b, t, 0, 0) + d, at.pack, wide.y, du);
  store_pack(p.type, p.ddelta.data, row_at(p.ddelta, span.b, t, 0, 0) + d, at.pack, wide.y, ddelta);
  if (p.dz.data)
    store_pack(p.type, p.dz.data, row_at(p.dz, span.b, t, 0, 0) + d, at.pack, wide.y, dz);
}

template <class R, int kLanes>
__global__ void __launch_bounds__(kScanThreads, sizeof(R) == 4 ? 4 : 1)
    backward(const SelectiveScanBackward p, const ScanWide wide) {
  using Shape = ScanShape<kLanes>;
  extern __shared__ __align__(16) unsigned char memory[];
  auto& shared = *reinterpret_cast<Shared<R, kLanes>*>(memory);
  constexpr int kUnroll =
      sizeof(R) == 4 ? kPart : 1;  // doubles would not fit, and compile for long
  const ScanPlace<kLanes> at(p.D);
  const Span span = span_of(p, at.s);
  const int warp = threadIdx.x / 32;
  const R twice = p.negative ? 2 : 1;  // da/de
  R A2[kScanStates], g[kScanStates], dA[kScanStates] = {};
  load_states(p.A, 0, p, at, A2);
  load_states(p.d_final_state, at.s * p.D, p, at, g);
#pragma unroll
  for (int i = 0; i < kScanStates; ++i) A2[i] *= kLog2e<R>;
  if (at.row < kScanTile)
    for (int i = 0; i < kPack; ++i)
      shared.dskip[at.row][at.pack_c + i] = shared.dbias[at.row][at.pack_c + i] = 0;
  const int64_t chunks = (span.length + kScanTile - 1) / kScanTile;
  const R* const kept = static_cast<const R*>(p.states) +
                        (first_kept(p, at.s, kScanTile) * p.D + min(at.d, p.D - 1)) * Shape::kN +
                        at.n0;
  for (int64_t chunk = chunks - 1; chunk >= 0; --chunk) {
    const int64_t first = chunk * kScanTile;
    const int count = int(min(int64_t(kScanTile), span.length - first));
    __syncthreads();
    fill(shared, p, wide, at, span, first, count);
    __syncthreads();
    for (int begin = (count - 1) / kPart * kPart; begin >= 0; begin -= kPart) {
      R h[kScanStates], before[kPart][kScanStates], b[kScanStates];
      load_eight(kept + chunk * p.D * Shape::kN, h);
      for (int t = 0; t < begin; ++t) {
        load_eight(&shared.B[t][at.n0], b);
        scan_step(h, A2, shared.step[t][at.c], shared.input[t][at.c], b, p.negative);
      }
#pragma unroll kUnroll
      for (int j = 0; j < kPart; ++j) {
#pragma unroll
        for (int i = 0; i < kScanStates; ++i) before[j][i] = h[i];
        load_eight(&shared.B[begin + j][at.n0], b);
        scan_step(h, A2, shared.step[begin + j][at.c], shared.input[begin + j][at.c], b,
                  p.negative);
      }
#pragma unroll kUnroll
      for (int j = kPart - 1; j >= 0; --j) {
        const int t = begin + j;
        const R dt = shared.step[t][at.c], x = shared.input[t][at.c], dread = shared.dread[t][at.c];
        R c[kScanStates], v[2 * kScanStates], along = 0, slope = 0, read = 0;
        load_eight(&shared.B[t][at.n0], b), load_eight(&shared.C[t][at.n0], c);
#pragma unroll
        for (int i = 0; i < kScanStates; ++i) {
          const R e = exp2_of(dt * A2[i]), a = p.negative ? 2 * e - 1 : e;
          g[i] += dread * c[i];
          v[i] = g[i] * x, v[kScanStates + i] = dread * h[i];
          along += g[i] * b[i], read += c[i] * h[i];
          const R r = g[i] * before[j][i] * e;
          dA[i] += r * dt, slope += r * A2[i];
          g[i] *= a, h[i] = before[j][i];
        }
        along = sum_lanes<kLanes>(along), slope = sum_lanes<kLanes>(slope);
        read = sum_lanes<kLanes>(read);
        __syncwarp();  // the other lanes of the channel have read what is overwritten
        if (at.n0 == 0) {
          shared.input[t][at.c] = along, shared.step[t][at.c] = slope * twice * kLn2<R>;
          shared.dread[t][at.c] = read;
        }
        const int which = sum_channels<kLanes>(v);
#pragma unroll
        for (int i = 0; i < kLanes / 2; ++i) {
          const int value = which + i;
          shared.sums[warp][t][value / kScanStates * Shape::kN + at.n0 + value % kScanStates] =
              v[i];
        }
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count * 2 * Shape::kN; i += kScanThreads) {
      const int t = i / (2 * Shape::kN), which = i % (2 * Shape::kN) / Shape::kN, n = i % Shape::kN;
      void* const to = which == 0 ? p.dB : p.dC;
      if (n >= p.N || !to) continue;
      R sum = 0;
      for (int w = 0; w < kWarps; ++w) sum += shared.sums[w][t][i % (2 * Shape::kN)];
      const int64_t group = at.first_channel / Shape::kChannels;
      static_cast<R*>(to)[((group * p.batch + span.b) * p.T + span.t0 + first + t) * p.N + n] = sum;
    }
    if (at.row < count && at.pack > 0) finish(shared, p, wide, at, span, first);
  }
#pragma unroll
  for (int i = 0; i < kScanStates; ++i) dA[i] *= twice;
  store_states(p.dA, at.s * p.D, p, at, dA);
  if (p.dstate) store_states(p.dstate, at.s * p.D, p, at, g);
  __syncthreads();
  const int64_t d = at.first_channel + threadIdx.x;
  if (threadIdx.x < Shape::kChannels && d < p.D) {
    R skip = 0, bias = 0;
    for (int t = 0; t < kScanTile; ++t)
      skip += shared.dskip[t][threadIdx.x], bias += shared.dbias[t][threadIdx.x];
    static_cast<R*>(p.dskip)[at.s * p.D + d] = skip;
    static_cast<R*>(p.dbias)[at.s * p.D + d] = bias;
  }
}

template <class R, int kLanes>
void launch(const SelectiveScanBackward& p, const ScanWide& wide, cudaStream_t stream) {
  constexpr size_t kBytes = sizeof(Shared<R, kLanes>);
  allow_shared(backward<R, kLanes>, kBytes);
  backward<R, kLanes><<<scan_blocks<kLanes>(p), kScanThreads, kBytes, stream>>>(p, wide);
}

}  // namespace

void scan_backward(const SelectiveScanBackward& p, void* stream) {
  if (p.S == 0 || p.D == 0) return;
  if (scan_by_warps(p)) {
    scan_warp_backward(p, stream);
    return check_launch("selective_scan");
  }
  const ScanWide wide(p, p.du, p.dy);
  with_scan_lanes(p, [&](auto zero, auto lanes) {
    launch<decltype(zero), decltype(lanes)::value>(p, wide, static_cast<cudaStream_t>(stream));
  });
  check_launch("selective_scan");
}

}  // namespace lrnn::kernels::cuda
