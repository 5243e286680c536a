#pragma once
#include "kernels/cuda/selective_scan/warp.cuh"

// Chunks from the last to the first. From the state that forward kept at a chunk's beginning the
// states before its parts of four tokens are computed again, then, part by part from the last, the
// four states, which stay in registers while the part is walked backwards; the state after a part
// is the one before the next. Sums over channels (dB, dC) are taken by threads that each have one
// token, four states and half the channels, then over the warps of the block, in a fixed order.
namespace lrnn::kernels::cuda {

constexpr int kScanPart = 4, kScanParts = kScanTile / kScanPart, kScanSums = 2 * kWarpStates;
constexpr int kBackwardBlocks = 4;  // a processor

struct WarpBackwardTile {
  // Of every token and channel two pairs. `steps`: dt and x = dt u, then what is left of du and of
  // the gradient of dt. `reads`: u and the gradient of the sum that C reads, then with a gate that
  // sum itself in the latter's place. The biases between them keep them in different banks.
  alignas(16) StepTile steps;
  alignas(16) float bias[kWarpChannels];
  alignas(16) StepTile reads;
  alignas(16) float skip[kWarpChannels];
  float4 starts[kScanParts - 2][2][32];  // before the second and the third part
  // Of two tokens: g and h of every thread, four states each. Rows of 34 keep the threads that add
  // them in different banks.
  float4 terms[2][4][34];
};

struct WarpBackwardShared {
  WarpBackwardTile warp[kScanWarps];
  alignas(16) StateTile B, C;
  float4 sums[kScanWarps][kScanTile][kScanSums / 4];  // dB, then dC
};
static_assert(sizeof(WarpBackwardShared) <= kMostShared / kBackwardBlocks - 1024);

__device__ __forceinline__ void operator+=(float4& a, const float4& b) {
  a.x += b.x, a.y += b.y, a.z += b.z, a.w += b.w;
}
__device__ __forceinline__ void add_product(float4& a, float b, const float4& c) {
  a.x = fmaf(b, c.x, a.x), a.y = fmaf(b, c.y, a.y);
  a.z = fmaf(b, c.z, a.z), a.w = fmaf(b, c.w, a.w);
}

template <Type kType, bool kNegative, bool kGated> struct WarpBackward {
  using States = float[kScanStates];
  struct Given {  // at a thread's token and channels
    ChannelPack<kType> u, delta, z, dy;
  };
  struct Sums {  // over a thread's states: of g B, of g h' e A, of C h
    float along = 0, slope = 0, read = 0;
  };
  const SelectiveScanBackward& p;
  const ScanWide& wide;
  const WarpPlace at;
  const Span span;
  WarpBackwardTile& tile;
  StateTile &B, &C;
  const float* kept;  // before the chunk, at this thread's states
  States A2, g, dA = {};
  float over_tokens = 0;  // of its channel, dskip where half is 0 and dbias where it is 1

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
             ((first_kept(p_, at.s, kScanTile) + (span.length - 1) / kScanTile) * p_.D +
              min(at.first_channel + at.own, p_.D - 1)) *
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

  __device__ __forceinline__ void load(Given& given, int64_t first) const {
    given.u.load(p.u, span, at, first, wide.u);
    given.delta.load(p.delta, span, at, first, wide.delta);
    given.dy.load(p.dy, span, at, first, wide.dy);
    if constexpr (kGated) given.z.load(p.z, span, at, first, wide.z);
  }
  // What the tile does not keep and had to leave the registers.
  __device__ __forceinline__ void load_again(Given& given, int64_t first) const {
    given.delta.load(p.delta, span, at, first, wide.delta);
    if constexpr (kGated) {
      given.dy.load(p.dy, span, at, first, wide.dy);
      given.z.load(p.z, span, at, first, wide.z);
    }
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
  __device__ __forceinline__ void prefetch(int64_t first) const {
    prefetch(p.u, first), prefetch(p.delta, first), prefetch(p.dy, first);
    if constexpr (kGated) prefetch(p.z, first);
    asm volatile("prefetch.global.L2 [%0];" ::"l"(kept - p.D * kWarpStates));
  }

  // dt of a thread's token and channels before the softplus.
  __device__ __forceinline__ void raw_steps(const ChannelPack<kType>& delta,
                                            float (&raw)[kPack]) const {
    load_eight(&tile.bias[at.pack_c], raw);
#pragma unroll
    for (int i = 0; i < kPack; ++i) raw[i] += delta[i];
  }

  __device__ __forceinline__ void fill(const Given& given, int count) const {
    float dt[kPack], x[kPack];
    raw_steps(given.delta, dt);
    if (p.softplus) {
#pragma unroll
      for (int i = 0; i < kPack; ++i) dt[i] = softplus(dt[i]);
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      if (at.row >= count) dt[i] = 0;  // a step of nothing: h and its gradient stay as they are
      x[i] = dt[i] * given.u[i];
    }
    store_steps(tile.steps, at, dt, x);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      dt[i] = given.u[i], x[i] = given.dy[i];
      if constexpr (kGated) x[i] *= silu(given.z[i]);
    }
    store_steps(tile.reads, at, dt, x);
  }

  __device__ __forceinline__ float2& step_of(int t) const {
    return *reinterpret_cast<float2*>(&tile.steps[t][2 * at.own]);
  }

  // The state after token t.
  __device__ __forceinline__ void step(int t, const States& h, States& after) const {
#pragma unroll
    for (int i = 0; i < kScanStates; ++i) after[i] = h[i];
    warp_step<kNegative>(after, A2, tile.steps, B, t, at);
  }

  // One token backwards, from the state before it and the state after it.
  __device__ __forceinline__ Sums back(int t, int j, const States& before, const States& after) {
    const float dt = step_of(t).x, dread = tile.reads[t][2 * at.own + 1];
    States b, c;
    load_eight(&B[t][at.half * kScanStates], b), load_eight(&C[t][at.half * kScanStates], c);
#pragma unroll
    for (int i = 0; i < kScanStates; ++i) g[i] = fmaf(dread, c[i], g[i]);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      tile.terms[j][i][at.lane] = make_float4(g[4 * i], g[4 * i + 1], g[4 * i + 2], g[4 * i + 3]);
      tile.terms[j][2 + i][at.lane] =
          make_float4(after[4 * i], after[4 * i + 1], after[4 * i + 2], after[4 * i + 3]);
    }
    Sums sums;
#pragma unroll
    for (int i = 0; i < kScanStates; ++i) {
      sums.along = fmaf(g[i], b[i], sums.along);
      if constexpr (kGated) sums.read = fmaf(c[i], after[i], sums.read);
      const float ge = g[i] * exp2_of(dt * A2[i]), r = ge * before[i];
      dA[i] = fmaf(r, dt, dA[i]), sums.slope = fmaf(r, A2[i], sums.slope);
      g[i] = kNegative ? fmaf(2.f, ge, -g[i]) : ge;
    }
    return sums;
  }

  // Of the two threads of a channel the first gets the sums of one token, the second of the other.
  __device__ __forceinline__ float share(float first, float second) const {
    const float send = at.half ? first : second, keep = at.half ? second : first;
    return keep + __shfl_xor_sync(0xffffffffu, send, 1);
  }

  // The terms of two tokens times x or dread, over the warp's channels.
  __device__ __forceinline__ void add_terms(float4 (*sums)[kScanSums / 4], int t) const {
    const int half = at.lane % 2, quad = at.lane / 2 % 4, j = at.lane / 8 % 2,
              first = at.lane / 16 * 8;
    const float* const factors = &(quad < 2 ? tile.steps : tile.reads)[t + j][2 * first];
    const float4* const terms = &tile.terms[j][quad][2 * first + half];
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int i = 0; i < 8; ++i) add_product(sum, factors[2 * i + 1], terms[2 * i]);
    const auto other = [](float x) { return __shfl_xor_sync(0xffffffffu, x, 16); };
    sum += make_float4(other(sum.x), other(sum.y), other(sum.z), other(sum.w));
    if (first == 0) sums[t + j][quad / 2 * 4 + half * 2 + quad % 2] = sum;
  }

  // Leaves the gradients that are sums over states where finish looks for them.
  __device__ __forceinline__ void store_sums(int t, const Sums& sums) const {
    constexpr float kSlope = (kNegative ? 2.f : 1.f) * kLn2<float>;  // da/de
    float2& step = step_of(t);
    float* const read = &tile.reads[t][2 * at.own];
    step = make_float2(step.x * sums.along, fmaf(read[0], sums.along, kSlope * sums.slope));
    if constexpr (kGated) read[1] = sums.read;
  }

  // A part backwards, from the state before it and, unless it is the chunk's last, the state after
  // it; leaves the state before it in `after`.
  __device__ __forceinline__ void part(int begin, bool last, const States& h, States& after,
                                       float4 (*sums)[kScanSums / 4]) {
    States before[kScanPart];
#pragma unroll
    for (int i = 0; i < kScanStates; ++i) before[0][i] = h[i];
#pragma unroll
    for (int j = 0; j + 1 < kScanPart; ++j) step(begin + j, before[j], before[j + 1]);
    if (last) step(begin + kScanPart - 1, before[kScanPart - 1], after);
#pragma unroll
    for (int j = kScanPart - 2; j >= 0; j -= 2) {
      const auto& next = j + 2 < kScanPart ? before[(j + 2) % kScanPart] : after;
      const Sums odd = back(begin + j + 1, 1, before[j + 1], next);
      const Sums even = back(begin + j, 0, before[j], before[j + 1]);
      Sums mine{share(even.along, odd.along), share(even.slope, odd.slope)};
      if constexpr (kGated) mine.read = share(even.read, odd.read);
      __syncwarp();
      add_terms(sums, begin + j);
      __syncwarp();  // nobody still reads what is written now and by the next two tokens
      store_sums(begin + j + at.half, mine);
    }
#pragma unroll
    for (int i = 0; i < kScanStates; ++i) after[i] = before[0][i];
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
  __device__ __forceinline__ void walk(int count, States& h, float4 (*sums)[kScanSums / 4]) {
    const int last = (count - 1) / kScanPart;
    States after;
    for (int i = 0; i < last; ++i) {
      if (i > 0) store_start(i - 1, h);
#pragma unroll
      for (int j = 0; j < kScanPart; ++j) step(i * kScanPart + j, h, h);
    }
    for (int i = last; i >= 0; --i) {
      if (i < last && i > 0) load_start(i - 1, h);
      if (i < last && i == 0) load_eight(kept, h);
      part(i * kScanPart, i == last, h, after, sums);
    }
  }

  // The gradients of a thread's own token and channels, from the sums over states.
  __device__ __forceinline__ void finish(const Given& given, int64_t first, int count) {
    float skip[kPack], du[kPack], ddelta[kPack], dz[kPack], u[kPack], dread[kPack];
    load_eight(&tile.skip[at.pack_c], skip);
    load_steps(tile.steps, at, du, ddelta), load_steps(tile.reads, at, u, dread);
    if constexpr (kGated) {
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        const float z = given.z[i], s = sigmoid(z), open = z * s, dy = given.dy[i];
        dz[i] = dy * fmaf(skip[i], u[i], dread[i]) * fmaf(open, 1 - s, s);  // the slope of silu
        dread[i] = dy * open;
      }
    }
    if (p.softplus) {
      float raw[kPack];
      raw_steps(given.delta, raw);
#pragma unroll
      for (int i = 0; i < kPack; ++i) ddelta[i] *= softplus_slope(raw[i]);
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      du[i] = fmaf(skip[i], dread[i], du[i]), dread[i] *= u[i];
      if (at.row >= count) ddelta[i] = 0;
    }
    store_steps(tile.steps, at, dread, ddelta);
    if (at.row < count && at.pack > 0) {
      const int64_t token = span.t0 + first + at.row, d = at.first_channel + at.pack_c;
      store_pack(kType, p.du.data, row_at(p.du, span.b, token, 0, 0) + d, at.pack, wide.y, du);
      store_pack(kType, p.ddelta.data, row_at(p.ddelta, span.b, token, 0, 0) + d, at.pack, wide.y,
                 ddelta);
      if constexpr (kGated)
        store_pack(kType, p.dz.data, row_at(p.dz, span.b, token, 0, 0) + d, at.pack, wide.y, dz);
    }
    __syncwarp();
    float sums[4];  // dskip and dbias, over the tokens
#pragma unroll
    for (int t = 0; t < kScanTile; ++t)
      sums[t % 4] = t < 4 ? tile.steps[t][at.lane] : sums[t % 4] + tile.steps[t][at.lane];
    over_tokens += sums[0] + sums[1] + (sums[2] + sums[3]);
  }
};

}  // namespace lrnn::kernels::cuda
