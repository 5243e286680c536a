#include <type_traits>

#include "kernels/cuda/diagonal/chunk.cuh"
#include "kernels/cuda/tile/pack.cuh"

// Gated linear attention in chunks of 16 tokens on tensor cores, forwards (chunk.cuh).
namespace lrnn::kernels::cuda {
namespace {

template <int kKeys> struct Layout : GlaLayout<kKeys> {
  using typename GlaLayout<kKeys>::Shape;
  static constexpr size_t kState = GlaLayout<kKeys>::kEnd, kA = kState + Shape::State::kBytes,
                          kBytes = kA + Shape::Pairs::kBytes;
};

// Sums of kCount values over a warp. Each step halves what a thread has left; the result is that of
// value `which`.
template <int kCount, int kDistance = 16>
__device__ __forceinline__ float sum_values(const float (&v)[kCount], int& which) {
  if constexpr (kCount == 1) {
    float sum = v[0];
#pragma unroll
    for (int d = kDistance; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    return sum;
  } else {
    constexpr int kHalf = kCount / 2;
    const bool upper = threadIdx.x & kDistance;
    float left[kHalf];
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float send = upper ? v[i] : v[i + kHalf], keep = upper ? v[i + kHalf] : v[i];
      left[i] = keep + __shfl_xor_sync(0xffffffffu, send, kDistance);
    }
    if (upper) which += kHalf;
    return sum_values<kHalf, kDistance / 2>(left, which);
  }
}

// Row t of A, over the keys of a warp; w: the keys of earlier tokens, decayed to t.
template <int kCount>
__device__ __forceinline__ void row_of_pairs(float q, const float (&w)[kGlaTokens], int t,
                                             float* row) {
  float v[kCount];
#pragma unroll
  for (int s = 0; s < kCount; ++s) v[s] = s <= t ? q * w[s] : 0.f;
  int which = 0;
  const float sum = sum_values(v, which);
  if (which <= t) row[which] = sum;
}

template <int kKeys>
__global__ void __launch_bounds__(kGlaThreads, 2)
    forward(const DiagonalForward p, const GlaKept kept, const bool wide) {
  using At = Layout<kKeys>;
  using Shape = GlaShape<kKeys>;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ float pairs[kKeys / 32][kGlaTokens][kGlaTokens], decay[kKeys];
  const typename Shape::Keys q(memory + At::kQ), k(memory + At::kK);
  const typename Shape::Values v(memory + At::kV);
  const typename Shape::State before(memory + At::kState);
  const typename Shape::Pairs A(memory + At::kA);
  const GlaPlace<kKeys> at(p);
  const bool has_key = threadIdx.x < kKeys;
  typename Shape::Tiles S = {};
  if (p.state)
    each_of_state<kKeys>(p, at, S,
                         [&](float& x, int64_t e) { x = static_cast<const float*>(p.state)[e]; });
  for (int i = threadIdx.x; i < int(sizeof(pairs) / sizeof(float)); i += kGlaThreads)
    (&pairs[0][0][0])[i] = 0;  // above the diagonal they stay so
  GlaKeyRaw key_raw;
  GlaValuesRaw value_raw;
  key_raw.load(p, at, 0);
  value_raw.load(p, p.v, at, 0, wide);
  __syncthreads();
  for (int64_t first = 0; first < at.span.length; first += kGlaTokens) {
    if (has_key) {
      const GlaKey key(key_raw, float(p.scale));
      float w[kGlaTokens] = {}, begin[kGlaTokens], end[kGlaTokens];
#pragma unroll
      for (int t = 0; t < kGlaTokens; ++t) {
#pragma unroll
        for (int s = 0; s < t; ++s) w[s] *= key.decay[t];
        w[t] = key.k[t];
        float* const row = pairs[at.warp][t];
        if (t < 1)
          row_of_pairs<1>(key.q[t], w, t, row);
        else if (t < 2)
          row_of_pairs<2>(key.q[t], w, t, row);
        else if (t < 4)
          row_of_pairs<4>(key.q[t], w, t, row);
        else if (t < 8)
          row_of_pairs<8>(key.q[t], w, t, row);
        else
          row_of_pairs<16>(key.q[t], w, t, row);
      }
      key.products(begin, end);
      put_tokens(q, at.key, key.q, begin), put_tokens(k, at.key, key.k, end);
      decay[at.key] = begin[kGlaTokens - 1];
    }
    value_raw.put(v);
    put_tiles<kKeys>(before, at, S,
                     p.states ? at.state(kept.states, p, first / kGlaTokens) : nullptr);
    if (first + kGlaTokens < at.span.length) {
      key_raw.load(p, at, first + kGlaTokens);
      value_raw.load(p, p.v, at, first + kGlaTokens, wide);
    }
    __syncthreads();
    {
      const int t = threadIdx.x / 8, s = threadIdx.x % 8 * 2;
      float left = 0, right = 0;
#pragma unroll
      for (int w = 0; w < kKeys / 32; ++w) left += pairs[w][t][s], right += pairs[w][t][s + 1];
      A.put(t, s, left, right);
      if (p.states && at.group == 0 && first + t < at.span.length) {
        const int64_t token = (at.span.b * p.T + at.span.t0 + first + t) * p.H + at.h;
        *reinterpret_cast<float2*>(kept.A + token * kGlaTokens + s) = make_float2(left, right);
      }
    }
    __syncthreads();
    float out[2][4] = {};
#pragma unroll
    for (int i = 0; i < kKeys; i += 16)
      multiply(out[0], out[1], q.a_columns(0, i), before.b_columns(i, 16 * at.warp));
    multiply(out[0], out[1], A.a_rows(0, 0), v.b_columns(0, 16 * at.warp));
    store_values<kKeys>(p, p.o, at, first, 16 * at.warp, out);
    times_keys<kKeys>(S, at, decay);
#pragma unroll
    for (int i = 0; i < Shape::kTiles; ++i) {
      const auto a = k.a_rows(at.tile_key(i), 0);
#pragma unroll
      for (int j = 0; j < kGlaColumns / 8; j += 2)
        multiply(S[i][j], S[i][j + 1], a, v.b_columns(0, 8 * j));
    }
    __syncthreads();
  }
  each_of_state<kKeys>(p, at, S,
                       [&](float& x, int64_t e) { static_cast<float*>(p.final_state)[e] = x; });
}

}  // namespace

int64_t diagonal_chunk_kept(const DiagonalInputs& p) { return GlaKept(p, nullptr).total; }

void diagonal_chunk_forward(const DiagonalForward& p, void* stream) {
  if (p.S * p.H == 0) return;
  const GlaKept kept(p, static_cast<float*>(p.states));
  with_gla_keys(p, [&](auto keys) {
    constexpr int kKeys = decltype(keys)::value;
    constexpr size_t kBytes = Layout<kKeys>::kBytes;
    allow_shared(forward<kKeys>, kBytes);
    forward<kKeys><<<gla_blocks(p), kGlaThreads, kBytes, static_cast<cudaStream_t>(stream)>>>(
        p, kept, lies_on_packs(p.v, p.type));
  });
  check_launch("diagonal");
}

}  // namespace lrnn::kernels::cuda
