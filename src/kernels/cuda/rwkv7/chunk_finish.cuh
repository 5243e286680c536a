#pragma once
#include "kernels/cuda/rwkv7/chunk.cuh"

// The last step of chunk_gradients.cu: from the gradients of decayed keys and of pairs of
// tokens to those of r, kk, k, the rate and the decays, one key at a time.
namespace lrnn::kernels::cuda::rwkv7 {

template <int kKeys> struct Shared {
  using Keys = Operand<kTokens, kKeys, 2>;
  using State = Operand<kColumns, kKeys, 2>;     // rows of values
  using Values = Operand<kTokens, kColumns, 2>;  // U and Y
  using Sums = float[kTokens + 1][kKeys + 8];
  static constexpr int kWarps = kKeys / 16;
  // When the states are done with.
  struct Results {
    float of[4][kTokens][kKeys + 8];       // dRq, dKq, dKe, -dWe; columns by place_of
    float pairs[4][kTokens][kTokens + 4];  // dArk, -dArw, dAuk, -dAuw; the last two a row up
    float through[4][kKeys];
    float other[2][kTokens][kKeys];  // from the other thread of a key
  };
  static_assert(sizeof(Results) <= 2 * State::kBytes);
  static constexpr int kSums = 0, kS = kSums + int(sizeof(Sums)), kG = kS + State::kBytes,
                       kKq = kG + State::kBytes, kWe = kKq + Keys::kBytes, kKe = kWe + Keys::kBytes,
                       kT = kKe + Keys::kBytes, kRk = kT + PairRows::kBytes,
                       kRw = kRk + PairRows::kBytes, kUk = kRw + PairRows::kBytes,
                       kV = kUk + PairRows::kBytes, kD = kV + ValueRows::kBytes,
                       kU = kD + ValueRows::kBytes, kY = kU + Values::kBytes,
                       kBytes = kY + Values::kBytes;
};

// Keys of this chunk's tokens in memory, zero outside.
struct KeysInMemory {
  const DiagonalBackward& p;
  const Place& at;
  int tokens;  // inside
  __device__ __forceinline__ KeysInMemory(const DiagonalBackward& p_, const Place& at_)
      : p(p_), at(at_), tokens(int(min(p.T - at.first, int64_t(kTokens)))) {}
  __device__ __forceinline__ bool inside(int t, int key) const { return t < tokens && key < p.K; }
  // The first token's row of this chunk.
  template <class Element = uint16_t>
  __device__ __forceinline__ Element* rows(const Rows& x) const {
    return static_cast<Element*>(x.data) + row_at(x, at.b, at.first, 0, at.h);
  }
  // One key of all tokens.
  __device__ __forceinline__ void column(const Rows& x, int key, float (&to)[kTokens]) const {
    const uint16_t* const from = rows(x) + key;
#pragma unroll
    for (int t = 0; t < kTokens; ++t)
      to[t] = inside(t, key) ? load<float, Bf16>(from, t * x.token) : 0.f;
  }
  // Two neighbours of four.
  __device__ __forceinline__ void pairs(const Rows& x, int first, int key, bool wide,
                                        uint32_t (&to)[4]) const {
    const uint16_t* const from = rows(x) + first * x.token + key;
    const bool both = key + 1 < p.K;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const uint16_t* const one = from + n * x.token;
      to[n] = 0;
      if (!inside(first + n, key)) continue;
      to[n] = wide && both ? *reinterpret_cast<const uint32_t*>(one)
                           : one[0] | (both ? uint32_t(one[1]) << 16 : 0u);
    }
  }
};

// The gradients of one key, from those of the results: a thread for what r reads and one for what
// kk does.
template <int kKeys>
__device__ __forceinline__ void finish(const KeysInMemory& keys,
                                       const typename Shared<kKeys>::Sums& sum,
                                       typename Shared<kKeys>::Results& results) {
  const DiagonalBackward& p = keys.p;
  const int key = threadIdx.x % kKeys, place = place_of<kKeys>(key);
  const bool second = threadIdx.x >= kKeys;
  const auto& with_k = results.pairs[second ? 2 : 0];
  const auto& with_w = results.pairs[second ? 3 : 1];
  const auto& of_query = results.of[second ? 1 : 0];
  float q[kTokens], k[kTokens], w[kTokens], dk[kTokens] = {}, dw[kTokens] = {}, dq[kTokens],
                                            decayed[kTokens];
  auto& kk = dq;  // until there is a gradient
  keys.column(p.k, key, k), keys.column(p.rate, key, w), keys.column(p.kk, key, kk);
#pragma unroll
  for (int t = 0; t < kTokens; ++t) w[t] *= kk[t];
  // The queries are r_t, or kk_(t+1), the last of which is not this chunk's.
  const float first_kk = kk[0];
  if (second) {
#pragma unroll
    for (int t = 0; t < kTokens; ++t) q[t] = t + 1 < kTokens ? kk[(t + 1) % kTokens] : 0.f;
  } else {
    keys.column(p.q, key, q);
#pragma unroll
    for (int t = 0; t < kTokens; ++t) q[t] *= float(p.scale);
  }
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    const int row = second ? t + 1 : t;
    const float decay = __expf(sum[t + 1][key] - sum[t][key]);
#pragma unroll
    for (int s = 0; s < t; ++s) decayed[s] *= decay;
    decayed[t] = 1;
    float total = 0;
#pragma unroll
    for (int s = 0; s <= t; s += 4) {
      float dA[4], dB[4];
      load_four(&with_k[t][s], dA), load_four(&with_w[t][s], dB);
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        if (s + u > t) continue;
        const float a = dA[u] * decayed[s + u], b = dB[u] * decayed[s + u];
        total = fmaf(a, k[s + u], total), total = fmaf(-b, w[s + u], total);
        dk[s + u] = fmaf(a, q[t], dk[s + u]), dw[s + u] = fmaf(-b, q[t], dw[s + u]);
      }
    }
    const float from_state = row < kTokens ? of_query[row][place] : 0.f;
    dq[t] = fmaf(__expf(sum[t + 1][key]), from_state, total);
  }
  // k is finished by the first thread, w by the second.
#pragma unroll
  for (int t = 0; t < kTokens; ++t) results.other[second][t][key] = second ? dk[t] : dw[t];
  __syncthreads();
  const auto store = [](uint16_t* to, float y) { *to = uint16_t(pack(y, 0.f)); };
  // dk and dq, or drate and dkk.
  const Rows &of_written = second ? p.drate : p.dk, &of_read = second ? p.dkk : p.dq;
  uint16_t *const to_written = keys.rows(of_written) + key, *const to_read =
                                                                keys.rows(of_read) + key;
  const uint16_t* const rates = keys.rows(p.rate) + key;
  float pass[kTokens], reach[kTokens];  // through the tokens before; to the end of the chunk
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    const float own = second ? dw[t] + results.other[0][t][key] : dk[t] + results.other[1][t][key];
    const float to_state = __expf(sum[kTokens][key] - sum[t + 1][key]) *
                           (second ? -results.of[3][t][place] : results.of[2][t][place]);
    const float x = second ? w[t] : k[t], total = own + to_state;
    pass[t] = q[t] * dq[t] - x * own, reach[t] = x * to_state;
    if (!keys.inside(t, key)) continue;
    float written = total, read = dq[t] * float(p.scale);
    if (second) {
      written *= t == 0 ? first_kk : q[t == 0 ? 0 : t - 1];
      read = t == 0 ? results.of[1][0][place] : dq[t == 0 ? 0 : t - 1];
      read = fmaf(load<float, Bf16>(rates, t * p.rate.token), total, read);
    }
    store(to_written + t * of_written.token, written);
    if (of_read.data) store(to_read + t * of_read.token, read);
  }
  // From each token on: what is read, less what is written; before it: what reaches the end.
  float later = 0, reaching = 0;
  if (!second)
#pragma unroll
    for (int n = 0; n < 4; ++n) later += results.through[n][place];
  if (!second) later *= __expf(sum[kTokens][key]);
#pragma unroll
  for (int t = 0; t < kTokens; ++t) reaching += reach[t];
#pragma unroll
  for (int t = kTokens - 1; t >= 0; --t) {
    later += pass[t], reaching -= reach[t];
    pass[t] = later + reaching;
    if (second) results.other[0][t][key] = pass[t];
  }
  __syncthreads();
  if (second) return;
  float* const to = keys.rows<float>(p.dlog_decay) + key;
#pragma unroll
  for (int t = 0; t < kTokens; ++t)
    if (keys.inside(t, key)) to[t * p.dlog_decay.token] = pass[t] + results.other[0][t][key];
}

}  // namespace lrnn::kernels::cuda::rwkv7
