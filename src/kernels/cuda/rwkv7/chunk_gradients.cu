#include <algorithm>

#include "kernels/cuda/rwkv7/chunk_finish.cuh"

// The gradients of all chunks at once, a block each, from the state S before a chunk and the
// gradient G of the state after it, both in tiles of 64 values:
//
//   Y = -T^T (Arw^T dO + We G)        dV = Ark^T dO + Ke G + Auk^T Y
//   dArk = dO V^T    dArw = -dO U^T   dAuk = Y V^T   dAuw = -Y U^T
//   dRq = dO S^T     dKq = Y S^T      dKe = V G^T    dWe = -U G^T
//
// and from these, one key at a time, those of r, kk, k and w. The gradient of a decay's logarithm
// counts what passes through it, as in diagonal_chunk_backward.cu.
namespace lrnn::kernels::cuda::rwkv7 {
namespace {

using Tile = float[2][4];

// Rows of a state in two parts, one after the other in memory.
template <int kThreads, int kRows, int kWidth>
__device__ __forceinline__ void fetch(const Operand<kRows, kWidth, 2>& to, const uint16_t* from) {
  constexpr int kPieces = kWidth / 8;  // of 16 bytes, a row
  const uint32_t base = shared_address(to.base);
#pragma unroll
  for (int i = threadIdx.x; i < 2 * kRows * kPieces; i += kThreads)
    copy_async(base + i / kPieces * Operand<kRows, kWidth, 2>::kStride + i % kPieces * 16,
               from + i * 8);
}

// x [16 values from v on, tokens] += a state times the transpose of rows of keys.
template <int kKeys>
__device__ __forceinline__ void over_keys(const typename Shared<kKeys>::State& state, int v,
                                          Tile& x, const typename Shared<kKeys>::Keys& rows) {
#pragma unroll
  for (int i = 0; i < kKeys; i += 64) {
    Fragment<2> a[4], b[4];
#pragma unroll
    for (int m = 0; m < 4; ++m)
      a[m] = state.a_rows(v, i + 16 * m), b[m] = rows.b_rows(i + 16 * m, 0);
    add_products(x, a, b);
  }
}

// A tile [16 values from v on, tokens] as rows of tokens.
template <class To>
__device__ __forceinline__ void put_across(const To& to, int v, const Fragment<2>& x) {
#pragma unroll
  for (int part = 0; part < 2; ++part)
    each_across(x.part[part], [&](int t, int channel, uint32_t both) {
      *reinterpret_cast<uint32_t*>(to.base + part * To::kPlane + t * To::kStride +
                                   2 * (v + channel)) = both;
    });
}

// Sums of the logarithms of decays before each token, and decayed keys as operands. Meets in
// between.
template <int kKeys>
__device__ __forceinline__ void put_operands(const KeysInMemory& keys, unsigned char* memory,
                                             bool wide) {
  using At = Shared<kKeys>;
  auto& sum = *reinterpret_cast<typename At::Sums*>(memory + At::kSums);
  const int key = threadIdx.x % (kKeys / 2) * 2, first = threadIdx.x / (kKeys / 2) * 4;
  uint32_t k[4], kk[4], rate[4];
  keys.pairs(keys.p.k, first, key, wide, k), keys.pairs(keys.p.kk, first, key, wide, kk);
  keys.pairs(keys.p.rate, first, key, wide, rate);
  if (threadIdx.x < kKeys) {
    float log[kTokens], x = 0;
    const float* const from = keys.rows<float>(keys.p.log_decay) + threadIdx.x;
#pragma unroll
    for (int t = 0; t < kTokens; ++t)
      log[t] = keys.inside(t, threadIdx.x) ? from[t * keys.p.log_decay.token] : 0.f;
    sum[0][threadIdx.x] = 0;
#pragma unroll
    for (int t = 0; t < kTokens; ++t) sum[t + 1][threadIdx.x] = x += fmaxf(log[t], kLeastLog);
  }
  __syncthreads();
  const typename At::Keys Kq(memory + At::kKq), We(memory + At::kWe), Ke(memory + At::kKe);
  const auto pair = [&](int t) { return *reinterpret_cast<const float2*>(&sum[t][key]); };
  const int place = place_of<kKeys>(key);
  const float2 end = pair(kTokens);
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const int t = first + n;
    const float2 before = pair(t), after = pair(t + 1);
    const float left = __expf(end.x - after.x), right = __expf(end.y - after.y);
    Kq.put(t, place, __expf(before.x) * low_of(kk[n]), __expf(before.y) * high_of(kk[n]));
    We.put(t, place, left * low_of(rate[n]) * low_of(kk[n]),
           right * high_of(rate[n]) * high_of(kk[n]));
    Ke.put(t, place, left * low_of(k[n]), right * high_of(k[n]));
  }
}

template <int kKeys>
__global__ void __launch_bounds__(2 * kKeys, kKeys == 64 ? 3 : 1)
    gradients(const DiagonalBackward p, const unsigned char* work, const uint16_t* states,
              const uint16_t* slopes, int64_t chunks, bool wide_keys, bool wide_v, bool wide_d) {
  using At = Shared<kKeys>;
  constexpr int kThreads = 2 * kKeys;
  extern __shared__ __align__(16) unsigned char memory[];
  const typename At::State S(memory + At::kS), G(memory + At::kG);
  const typename At::Keys Kq(memory + At::kKq), We(memory + At::kWe), Ke(memory + At::kKe);
  const PairRows T(memory + At::kT), Rk(memory + At::kRk), Rw(memory + At::kRw),
      Uk(memory + At::kUk);
  const ValueRows V(memory + At::kV), D(memory + At::kD);
  const typename At::Values U(memory + At::kU), Y(memory + At::kY);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, c = lane % 4;
  const Place at(p, chunks);
  const int groups = int(groups_of(p));
  const auto ask = [&](int group) {
    const int64_t from = (int64_t(blockIdx.x) * groups + group) * state_elements<kKeys>();
    fetch<kThreads>(S, states + from), fetch<kThreads>(G, slopes + from);
    if (threadIdx.x < 128) {
      const int64_t v0 = int64_t(group) * kColumns;
      fetch_values(V, head_of(p.v, at.b, at.h), p.v.token, at.first, v0, p, wide_v);
      fetch_values(D, head_of(p.d_o, at.b, at.h), p.d_o.token, at.first, v0, p, wide_d);
    }
    copy_commit();
  };
#pragma unroll
  for (int n = 0; n < 4; ++n)
    fetch_tokens<kThreads, kTokens>(PairRows(memory + At::kT + n * PairRows::kBytes),
                                    work + int64_t(blockIdx.x) * Work<kKeys>::kBackward +
                                        Work<kKeys>::kFourPairs + n * Work<kKeys>::kPairs);
  ask(0);
  const KeysInMemory keys(p, at);
  put_operands<kKeys>(keys, memory, wide_keys);
  Tile of[4] = {}, pairs = {};
  float2 through = make_float2(0, 0);
  for (int group = 0; group < groups; ++group) {
    if (group > 0) {
      __syncthreads();
      ask(group);
    }
    copy_wait<0>();
    __syncthreads();
    // 16 values a warp; with eight warps half of them make U, the others Y and dV.
    const int v = warp % 4 * 16;
    if (At::kWarps == 4 || warp < 4) {
      Tile x = {}, u = {};
      over_keys<kKeys>(S, v, x, Kq);
      multiply(x[0], x[1], V.a_columns(v, 0), Uk.b_rows(0, 0));
      multiply(u[0], u[1], as_fragment<2>(x[0], x[1]), T.b_rows(0, 0));
      put_across(U, v, as_fragment<2>(u[0], u[1]));
    }
    if (At::kWarps == 4 || warp >= 4) {
      Tile x = {}, y = {}, dv = {};
      const auto d = D.a_columns(v, 0);
      over_keys<kKeys>(G, v, x, We);
      over_keys<kKeys>(G, v, dv, Ke);
      multiply(x[0], x[1], d, Rw.b_columns(0, 0));
      multiply(dv[0], dv[1], d, Rk.b_columns(0, 0));
      multiply(y[0], y[1], as_fragment<2>(x[0], x[1]), T.b_columns(0, 0));
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) y[j][i] = -y[j][i];
      const auto y_parts = as_fragment<2>(y[0], y[1]);
      put_across(Y, v, y_parts);
      multiply(dv[0], dv[1], y_parts, Uk.b_columns(0, 0));
      store_across(dv, head_of(p.dv, at.b, at.h), p.dv.token, at.first,
                   int64_t(group) * kColumns + v, p);
    }
    __syncthreads();
    const int key = warp * 16;
#pragma unroll
    for (int i = 0; i < kColumns; i += 16) {
      const auto s = S.b_columns(i, key), slope = G.b_columns(i, key);
      const auto d = D.a_rows(0, i), value = V.a_rows(0, i);
      const auto y = Y.a_rows(0, i), u = U.a_rows(0, i);
      multiply(of[0][0], of[0][1], d, s), multiply(of[1][0], of[1][1], y, s);
      multiply(of[2][0], of[2][1], value, slope), multiply(of[3][0], of[3][1], u, slope);
      if (warp == 0) multiply(pairs[0], pairs[1], d, V.b_rows(i, 0));
      if (warp == 1) multiply(pairs[0], pairs[1], d, U.b_rows(i, 0));
      if (warp == 2) multiply(pairs[0], pairs[1], y, V.b_rows(i, 0));
      if (warp == 3) multiply(pairs[0], pairs[1], y, U.b_rows(i, 0));
    }
    const int column = threadIdx.x % (kKeys / 2) * 2, row = threadIdx.x / (kKeys / 2) * 16;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const float2 x = S.get(row + i, column), y = G.get(row + i, column);
      through.x = fmaf(x.x, y.x, through.x), through.y = fmaf(x.y, y.y, through.y);
    }
  }
  __syncthreads();
  auto& results = *reinterpret_cast<typename At::Results*>(memory + At::kS);
#pragma unroll
  for (int kind = 0; kind < 4; ++kind)
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<float2*>(&results.of[kind][g + 8 * half][warp * 16 + 8 * j + 2 * c]) =
            make_float2(of[kind][j][2 * half], of[kind][j][2 * half + 1]);
  if (warp < 4)
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int t = g + 8 * half, row = warp < 2 ? t : (t + kTokens - 1) % kTokens;
        const bool zero = warp >= 2 && t == 0;  // nobody reads the last row of kk
        *reinterpret_cast<float2*>(&results.pairs[warp][row][8 * j + 2 * c]) =
            zero ? make_float2(0, 0) : make_float2(pairs[j][2 * half], pairs[j][2 * half + 1]);
      }
  *reinterpret_cast<float2*>(
      &results.through[threadIdx.x / (kKeys / 2)][threadIdx.x % (kKeys / 2) * 2]) = through;
  __syncthreads();
  finish<kKeys>(keys, *reinterpret_cast<typename At::Sums*>(memory + At::kSums), results);
}

}  // namespace
}  // namespace lrnn::kernels::cuda::rwkv7

namespace lrnn::kernels::cuda {

bool rwkv7_chunk_fits(const DiagonalInputs& p) {
  if (rwkv7_chunk_keys(p) == 0) return false;
  size_t bytes = 0;  // of the gradients; preparation takes less
  rwkv7::with_keys(p, [&](auto keys) { bytes = rwkv7::Shared<decltype(keys)::value>::kBytes; });
  bytes = std::max(bytes, rwkv7::sweep_bytes(p));
  return bytes <= size_t(chip().shared);
}

void rwkv7_chunk_backward(const DiagonalBackward& p, void* work, void* gradients, void* stream) {
  rwkv7::prepare(p, true, work, stream);
  rwkv7::Sweep to{p};
  to.values = p.d_o, to.begin = static_cast<const float*>(p.d_final_state);
  to.end = static_cast<float*>(p.dstate), to.work = static_cast<const unsigned char*>(work);
  to.states = static_cast<uint16_t*>(gradients);
  rwkv7::sweep(to, true, stream);
  const int64_t chunks = rwkv7::chunks_of(p);
  rwkv7::with_keys(p, [&](auto keys) {
    constexpr int kKeys = decltype(keys)::value;
    constexpr size_t kBytes = rwkv7::Shared<kKeys>::kBytes;
    allow_shared(rwkv7::gradients<kKeys>, kBytes);
    rwkv7::gradients<kKeys><<<rwkv7::blocks_of(p.B * p.H * chunks), 2 * kKeys, kBytes,
                              static_cast<cudaStream_t>(stream)>>>(
        p, static_cast<const unsigned char*>(work), static_cast<const uint16_t*>(p.states),
        static_cast<const uint16_t*>(gradients), chunks, rwkv7::keys_lie_on_packs(p),
        lies_on_packs(p.v, p.type), lies_on_packs(p.d_o, p.type));
  });
  check_launch("rwkv7");
}

}  // namespace lrnn::kernels::cuda
