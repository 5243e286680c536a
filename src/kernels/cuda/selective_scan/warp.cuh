#pragma once
#include "kernels/cuda/selective_scan/selective_scan.cuh"

// The scan for up to 16 states. A warp has 16 channels of one sequence: two neighbouring threads
// share a channel, and each keeps eight of its states in registers. What is needed once per channel
// and token (softplus, silu, loads and stores) is done for tiles of 16 tokens, one token and eight
// neighbouring channels a thread, and goes through the warp's own shared memory.
namespace lrnn::kernels::cuda {

constexpr int kWarpChannels = 16, kWarpStates = 16, kScanWarps = 4,
              kWarpBlock = kScanWarps * kWarpChannels;
static_assert(kScanTile * kWarpChannels / kPack == 32);

// Rows are padded so that eight of them begin in different banks.
using ChannelTile = float[kScanTile][kWarpChannels + 4];
using StepTile = float[kScanTile][2 * kWarpChannels + 4];  // dt and dt u of every channel
using StateTile = float[kScanTile][kWarpStates + 4];       // B or C

// Where a thread stands: in the recurrence, and between the steps.
struct WarpPlace {
  int64_t s, group, first_channel;
  int warp, lane, half, own;  // own: its channel in the warp's
  int row, pack_c, pack;      // its token of a tile, its first channel there and how many there are

  __device__ __forceinline__ explicit WarpPlace(int64_t D) {
    const int64_t groups = (D + kWarpBlock - 1) / kWarpBlock;
    s = blockIdx.x / groups, group = blockIdx.x - s * groups;
    warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    first_channel = group * kWarpBlock + warp * kWarpChannels;
    half = lane % 2, own = lane / 2;
    row = lane % kScanTile, pack_c = lane / kScanTile * kPack;
    pack = int(min(max(D - first_channel - pack_c, int64_t(0)), int64_t(kPack)));
  }
};

// This thread's part of a wide array [D,N] that begins at `from`; zeros where there is none.
__device__ __forceinline__ void load_own(const void* from, int64_t first,
                                         const SelectiveScanInputs& p, const WarpPlace& at,
                                         float (&x)[kScanStates]) {
  const int64_t d = at.first_channel + at.own;
#pragma unroll
  for (int i = 0; i < kScanStates; ++i) {
    const int n = at.half * kScanStates + i;
    x[i] =
        from && d < p.D && n < p.N ? static_cast<const float*>(from)[(first + d) * p.N + n] : 0.f;
  }
}

__device__ __forceinline__ void store_own(void* to, int64_t first, const SelectiveScanInputs& p,
                                          const WarpPlace& at, const float (&x)[kScanStates]) {
  const int64_t d = at.first_channel + at.own;
#pragma unroll
  for (int i = 0; i < kScanStates; ++i) {
    const int n = at.half * kScanStates + i;
    if (d < p.D && n < p.N) static_cast<float*>(to)[(first + d) * p.N + n] = x[i];
  }
}

// Eight neighbouring floats that lie on 16 bytes.
__device__ __forceinline__ void store_vector(float* to, const float (&x)[kPack]) {
  reinterpret_cast<float4*>(to)[0] = make_float4(x[0], x[1], x[2], x[3]);
  reinterpret_cast<float4*>(to)[1] = make_float4(x[4], x[5], x[6], x[7]);
}

// A token's eight channels.
template <Type kType> struct ChannelPack {
  Pack<float> x;

  __device__ __forceinline__ void load(const Rows& rows, const Span& span, const WarpPlace& at,
                                       int64_t first, bool wide) {
    const int64_t t = first + at.row;
    x.load(kType, rows.data, row_at(rows, span.b, span.t0 + t, 0, 0) + at.first_channel + at.pack_c,
           rows.data && t < span.length ? at.pack : 0, wide);
  }
  __device__ __forceinline__ float operator[](int i) const { return x.get(kType, i); }
};

// Half the states of a token of B or C.
template <Type kType> struct StatePack {
  Pack<float> x;

  __device__ __forceinline__ void load(const SelectiveScanInputs& p, const Rows& rows,
                                       const Span& span, const WarpPlace& at, int64_t first,
                                       bool wide) {
    const int64_t t = first + at.lane / 2;
    const int n0 = at.half * kScanStates;
    const int n = rows.data && t < span.length
                      ? int(min(max(p.N - n0, int64_t(0)), int64_t(kScanStates)))
                      : 0;
    x.load(kType, rows.data, row_at(rows, span.b, span.t0 + t, 0, 0) + n0, n, wide);
  }
  __device__ __forceinline__ void store(StateTile& to, const WarpPlace& at) const {
    float f[kPack];
#pragma unroll
    for (int i = 0; i < kPack; ++i) f[i] = x.get(kType, i);
    store_vector(&to[at.lane / 2][at.half * kScanStates], f);
  }
};

// dt and dt u of a thread's token and channels, to where the recurrence looks for them.
__device__ __forceinline__ void store_steps(StepTile& to, const WarpPlace& at,
                                            const float (&dt)[kPack], const float (&x)[kPack]) {
#pragma unroll
  for (int i = 0; i < kPack; i += 2)
    *reinterpret_cast<float4*>(&to[at.row][2 * (at.pack_c + i)]) =
        make_float4(dt[i], x[i], dt[i + 1], x[i + 1]);
}

__device__ __forceinline__ void load_steps(const StepTile& from, const WarpPlace& at,
                                           float (&dt)[kPack], float (&x)[kPack]) {
#pragma unroll
  for (int i = 0; i < kPack; i += 2) {
    const float4 f = *reinterpret_cast<const float4*>(&from[at.row][2 * (at.pack_c + i)]);
    dt[i] = f.x, x[i] = f.y, dt[i + 1] = f.z, x[i + 1] = f.w;
  }
}

template <bool kNegative> __device__ __forceinline__ float transition(float e) {
  return kNegative ? fmaf(2.f, e, -1.f) : e;
}

// h <- a h + dt u B for token t, with a = e = 2^(dt A2), or 2 e - 1.
template <bool kNegative>
__device__ __forceinline__ void warp_step(float (&h)[kScanStates], const float (&A2)[kScanStates],
                                          const StepTile& steps, const StateTile& B, int t,
                                          const WarpPlace& at) {
  const float2 step = *reinterpret_cast<const float2*>(&steps[t][2 * at.own]);
  float b[kScanStates];
  load_eight(&B[t][at.half * kScanStates], b);
#pragma unroll
  for (int i = 0; i < kScanStates; ++i)
    h[i] = fmaf(transition<kNegative>(exp2_of(step.x * A2[i])), h[i], step.y * b[i]);
}

// Adds the two halves of a sum over states.
__device__ __forceinline__ float sum_halves(float x) {
  return x + __shfl_xor_sync(0xffffffffu, x, 1);
}

inline unsigned warp_blocks(const SelectiveScanInputs& p) {
  const int64_t blocks = p.S * ((p.D + kWarpBlock - 1) / kWarpBlock);
  check(blocks < (int64_t(1) << 31), "[selective_scan] too many sequences and channels for a grid");
  return unsigned(blocks);
}

// Calls f(type, negative) with both known when compiling.
template <class F> void with_scan_kind(const SelectiveScanInputs& p, F&& f) {
  const auto by_range = [&](auto type) {
    p.negative ? f(type, std::true_type()) : f(type, std::false_type());
  };
  p.type == Type::kBFloat16 ? by_range(std::integral_constant<Type, Type::kBFloat16>())
                            : by_range(std::integral_constant<Type, Type::kFloat32>());
}

}  // namespace lrnn::kernels::cuda
