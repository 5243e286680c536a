#pragma once
#include "kernels/cuda/selective_scan_warp.cuh"

// Chunks from the last to the first. From the state that forward kept at a chunk's beginning the
// states before its parts of four tokens are computed again, then, part by part from the last, the
// four states, which stay in registers while the part is walked backwards. Sums over channels (dB,
// dC) are taken by threads that each have one token, four states and half the channels, then over
// the warps of the block, in a fixed order.
namespace lrnn::kernels::cuda {

constexpr int kScanPart = 4, kScanParts = kScanTile / kScanPart, kScanSums = 2 * kWarpStates;

struct WarpBackwardTile {
  // In the end `steps` holds dt and the sums over states of g B, `slope` those of g h' e A and
  // `read` those of C h. `slope` begins as the gradient of the sum that C reads.
  alignas(16) StepTile steps;
  alignas(16) ChannelTile slope, read;
  alignas(16) float bias[kWarpChannels];
  alignas(16) float skip[kWarpChannels];
  float4 starts[kScanParts - 2][2][32];  // before the second and the third part
  // Of two tokens: dB, dC of every thread, four states each. Rows of 34 keep the threads that add
  // them in different banks.
  float4 terms[2][4][34];
};

struct WarpBackwardShared {
  WarpBackwardTile warp[kScanWarps];
  alignas(16) StateTile B, C;
  float4 sums[kScanWarps][kScanTile][kScanSums / 4];  // dB, then dC
};
static_assert(sizeof(WarpBackwardShared) <= kMostShared / 4 - 1024);  // four blocks a processor

__device__ __forceinline__ void operator+=(float4& a, const float4& b) {
  a.x += b.x, a.y += b.y, a.z += b.z, a.w += b.w;
}

template <Type kType> struct WarpGiven {
  ChannelPack<kType> u, delta, z, dy;

  __device__ __forceinline__ void load(const SelectiveScanBackward& p, const ScanWide& wide,
                                       const Span& span, const WarpPlace& at, int64_t first) {
    u.load(p.u, span, at, first, wide.u), delta.load(p.delta, span, at, first, wide.delta);
    z.load(p.z, span, at, first, wide.z), dy.load(p.dy, span, at, first, wide.dy);
  }
};

template <Type kType, bool kNegative> struct WarpBackward {
  using States = float[kScanStates];
  const SelectiveScanBackward& p;
  const ScanWide& wide;
  const WarpPlace at;
  const Span span;
  WarpBackwardTile& tile;
  StateTile &B, &C;
  const float* const kept;  // of the sequence's first chunk, at this thread's states
  States A2, g, dA = {};
  float dskip = 0, dbias = 0;  // of one channel of the pack, the one whose number is the row's

  __device__ __forceinline__ WarpBackward(const SelectiveScanBackward& p_, const ScanWide& wide_,
                                          WarpBackwardShared& shared)
      : p(p_),
        wide(wide_),
        at(p_.D),
        span(span_of(p_, at.s)),
        tile(shared.warp[at.warp]),
        B(shared.B),
        C(shared.C),
        kept(static_cast<const float*>(p_.states) +
             (first_kept(p_, at.s, kScanTile) * p_.D + min(at.first_channel + at.own, p_.D - 1)) *
                 kWarpStates +
             at.half * kScanStates) {
    load_own(p.A, 0, p, at, A2);
    load_own(p.d_final_state, at.s * p.D, p, at, g);
#pragma unroll
    for (int i = 0; i < kScanStates; ++i) A2[i] *= kLog2e<float>;
    if (at.lane < kWarpChannels) {
      const int64_t d = at.first_channel + at.lane;
      tile.bias[at.lane] = channel<float>(p.delta_bias, d, d < p.D);
      tile.skip[at.lane] = channel<float>(p.skip, d, d < p.D);
    }
    __syncwarp();
  }

  __device__ __forceinline__ void load_kept(int64_t chunk, States& h) const {
    load_eight(kept + chunk * p.D * kWarpStates, h);
  }

  // Into the second cache, for the chunk before this one.
  __device__ __forceinline__ void prefetch(const Rows& rows, int64_t first) const {
    if (!rows.data || at.pack == 0) return;
    const char* const x =
        static_cast<const char*>(rows.data) +
        (row_at(rows, span.b, span.t0 + first + at.row, 0, 0) + at.first_channel + at.pack_c) *
            size_of(kType);
    asm volatile("prefetch.global.L2 [%0];" ::"l"(x));
  }
  __device__ __forceinline__ void prefetch(int64_t chunk) const {
    const int64_t first = chunk * kScanTile;
    prefetch(p.u, first), prefetch(p.delta, first), prefetch(p.dy, first), prefetch(p.z, first);
    asm volatile("prefetch.global.L2 [%0];" ::"l"(kept + chunk * p.D * kWarpStates));
  }

  __device__ __forceinline__ void fill(const WarpGiven<kType>& given, int count) const {
    float bias[kPack], dt[kPack], x[kPack], dread[kPack];
    load_eight(&tile.bias[at.pack_c], bias);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      dt[i] = given.delta[i] + bias[i];
      if (p.softplus) dt[i] = softplus(dt[i]);
      if (at.row >= count) dt[i] = 0;  // a step of nothing: h and its gradient stay as they are
      x[i] = dt[i] * given.u[i], dread[i] = given.dy[i];
      if (p.z.data) dread[i] *= silu(given.z[i]);
    }
    store_steps(tile.steps, at, dt, x);
    store_vector(&tile.slope[at.row][at.pack_c], dread);
  }

  __device__ __forceinline__ void step(int t, States& h) const {
    warp_step<kNegative>(h, A2, tile.steps, B, t, at);
  }

  // One token backwards, from the state before it and the state after it.
  __device__ __forceinline__ void back(int t, int j, const States& before, const States& after) {
    const float2 step = *reinterpret_cast<const float2*>(&tile.steps[t][2 * at.own]);
    const float dt = step.x, x = step.y, dread = tile.slope[t][at.own];
    States b, c, dB, dC;
    load_eight(&B[t][at.half * kScanStates], b), load_eight(&C[t][at.half * kScanStates], c);
    float along = 0, slope = 0, read = 0;
#pragma unroll
    for (int i = 0; i < kScanStates; ++i) {
      g[i] = fmaf(dread, c[i], g[i]);
      dB[i] = g[i] * x, dC[i] = dread * after[i];
      along = fmaf(g[i], b[i], along);
      if (p.z.data) read = fmaf(c[i], after[i], read);
      const float ge = g[i] * exp2_of(dt * A2[i]), r = ge * before[i];
      dA[i] = fmaf(r, dt, dA[i]), slope = fmaf(r, A2[i], slope);
      g[i] = kNegative ? fmaf(2.f, ge, -g[i]) : ge;
    }
    const float twice = kNegative ? 2.f : 1.f;  // da/de
    along = sum_halves(along), slope = sum_halves(slope) * (twice * kLn2<float>);
    if (p.z.data) {
      read = sum_halves(read);
      if (at.half == 0) tile.read[t][at.own] = read;
    }
    if (at.half == 0) tile.steps[t][2 * at.own + 1] = along, tile.slope[t][at.own] = slope;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      tile.terms[j][i][at.lane] =
          make_float4(dB[4 * i], dB[4 * i + 1], dB[4 * i + 2], dB[4 * i + 3]);
      tile.terms[j][2 + i][at.lane] =
          make_float4(dC[4 * i], dC[4 * i + 1], dC[4 * i + 2], dC[4 * i + 3]);
    }
  }

  // The terms of two tokens, over the warp's channels.
  __device__ __forceinline__ void add_terms(float4 (*sums)[kScanSums / 4], int t) const {
    const int half = at.lane % 2, quad = at.lane / 2 % 4, j = at.lane / 8 % 2,
              channels = at.lane / 16;
    float4 sum = tile.terms[j][quad][16 * channels + half];
#pragma unroll
    for (int i = 1; i < 8; ++i) sum += tile.terms[j][quad][16 * channels + 2 * i + half];
    const auto other = [](float x) { return __shfl_xor_sync(0xffffffffu, x, 16); };
    sum += make_float4(other(sum.x), other(sum.y), other(sum.z), other(sum.w));
    if (channels == 0) sums[t + j][quad / 2 * 4 + half * 2 + quad % 2] = sum;
  }

  __device__ __forceinline__ void part(int begin, States& h, float4 (*sums)[kScanSums / 4]) {
    States before[kScanPart + 1];
#pragma unroll
    for (int j = 0; j <= kScanPart; ++j) {
#pragma unroll
      for (int i = 0; i < kScanStates; ++i) before[j][i] = h[i];
      if (j < kScanPart) step(begin + j, h);
    }
#pragma unroll
    for (int j = kScanPart - 2; j >= 0; j -= 2) {
      __syncwarp();  // nobody still adds the terms of the last two tokens
      back(begin + j + 1, 1, before[j + 1], before[j + 2]);
      back(begin + j, 0, before[j], before[j + 1]);
      __syncwarp();
      add_terms(sums, begin + j);
    }
  }

  __device__ __forceinline__ void store_start(int part, const States& h) const {
    tile.starts[part][0][at.lane] = make_float4(h[0], h[1], h[2], h[3]);
    tile.starts[part][1][at.lane] = make_float4(h[4], h[5], h[6], h[7]);
  }
  __device__ __forceinline__ void load_start(int part, States& h) const {
    const float4 x = tile.starts[part][0][at.lane], y = tile.starts[part][1][at.lane];
    h[0] = x.x, h[1] = x.y, h[2] = x.z, h[3] = x.w;
    h[4] = y.x, h[5] = y.y, h[6] = y.z, h[7] = y.w;
  }

  // All parts of a chunk.
  __device__ __forceinline__ void walk(int64_t chunk, int count, States& h,
                                       float4 (*sums)[kScanSums / 4]) {
    const int last = (count - 1) / kScanPart;
    for (int i = 0; i < last; ++i) {
      if (i > 0) store_start(i - 1, h);
#pragma unroll
      for (int j = 0; j < kScanPart; ++j) step(i * kScanPart + j, h);
    }
    for (int i = last; i >= 0; --i) {
      if (i < last && i > 0) load_start(i - 1, h);
      if (i < last && i == 0) load_kept(chunk, h);
      part(i * kScanPart, h, sums);
    }
  }

  // Sums over the tokens of a tile, for the thread whose row is the channel's number.
  __device__ __forceinline__ float over_rows(const float (&x)[kPack]) const {
    float mine = 0;
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const float sum = sum_lanes<kScanTile>(x[i]);
      if (at.row == i) mine = sum;
    }
    return mine;
  }

  // The gradients of a thread's own token and channels, from the sums over states.
  __device__ __forceinline__ void finish(const WarpGiven<kType>& given, int64_t first, int count) {
    float skip[kPack], bias[kPack], read[kPack], slope[kPack], steps[2 * kPack];
    float du[kPack], ddelta[kPack], dz[kPack], skips[kPack], biases[kPack];
    load_eight(&tile.skip[at.pack_c], skip), load_eight(&tile.bias[at.pack_c], bias);
    load_eight(&tile.slope[at.row][at.pack_c], slope);
    if (p.z.data) load_eight(&tile.read[at.row][at.pack_c], read);
#pragma unroll
    for (int i = 0; i < 2 * kPack; i += 4) {
      const float4 f = *reinterpret_cast<const float4*>(&tile.steps[at.row][2 * at.pack_c + i]);
      steps[i] = f.x, steps[i + 1] = f.y, steps[i + 2] = f.z, steps[i + 3] = f.w;
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const float dt = steps[2 * i], along = steps[2 * i + 1], u = given.u[i];
      float dread = given.dy[i];
      if (p.z.data) {
        const float z = given.z[i], s = sigmoid(z), open = z * s;
        dz[i] = dread * fmaf(skip[i], u, read[i]) * fmaf(open, 1 - s, s);  // the slope of silu
        dread *= open;
      }
      du[i] = fmaf(skip[i], dread, dt * along);
      ddelta[i] = fmaf(u, along, slope[i]);
      if (p.softplus) ddelta[i] *= softplus_slope(given.delta[i] + bias[i]);
      skips[i] = dread * u, biases[i] = at.row < count ? ddelta[i] : 0.f;
    }
    if (at.row < count && at.pack > 0) {
      const int64_t token = span.t0 + first + at.row, d = at.first_channel + at.pack_c;
      store_pack(kType, p.du.data, row_at(p.du, span.b, token, 0, 0) + d, at.pack, wide.y, du);
      store_pack(kType, p.ddelta.data, row_at(p.ddelta, span.b, token, 0, 0) + d, at.pack, wide.y,
                 ddelta);
      if (p.dz.data)
        store_pack(kType, p.dz.data, row_at(p.dz, span.b, token, 0, 0) + d, at.pack, wide.y, dz);
    }
    dskip += over_rows(skips), dbias += over_rows(biases);
  }
};

}  // namespace lrnn::kernels::cuda
