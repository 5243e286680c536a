#include "kernels/cuda/rwkv7_chunk.cuh"

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

template <int kKeys> struct Room {
  using Keys = KeyRows<kKeys>;
  using State = Operand<kColumns, kKeys, 2>;     // rows of values
  using Values = Operand<kColumns, kTokens, 2>;  // U and Y, transposed
  static constexpr int kWarps = kKeys / 16;
  // When the states are done with.
  struct Results {
    float of[4][kTokens][kKeys + 8];         // dRq, dKq, dKe, -dWe; columns by place_of
    typename Chunk<kKeys>::Square pairs[4];  // dArk, -dArw, dAuk, -dAuw; the last two a row up
    float through[4][kKeys];
    float other[2][kTokens][kKeys];  // from the other thread of a key
  };
  static constexpr int kStates = 2 * State::kBytes > int(sizeof(Results)) ? 2 * State::kBytes
                                                                          : int(sizeof(Results));
  static constexpr int kChunk = 0, kS = (int(sizeof(Chunk<kKeys>)) + 15) / 16 * 16,
                       kG = kS + State::kBytes, kKq = kS + kStates, kWe = kKq + Keys::kBytes,
                       kKe = kWe + Keys::kBytes, kT = kKe + Keys::kBytes,
                       kRk = kT + PairRows::kBytes, kRw = kRk + PairRows::kBytes,
                       kUk = kRw + PairRows::kBytes, kV = kUk + PairRows::kBytes,
                       kD = kV + ValueRows::kBytes, kU = kD + ValueRows::kBytes,
                       kY = kU + Values::kBytes, kBytes = kY + Values::kBytes;
};

using Tile = float[2][4];

template <class To> __device__ __forceinline__ void put_tile(const To& to, int row, const Tile& x) {
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int j = 0; j < 2; ++j)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      to.put(row + g + 8 * half, 8 * j + 2 * c, x[j][2 * half], x[j][2 * half + 1]);
}

// Decayed keys, and the matrices of pairs, as operands.
template <int kKeys>
__device__ __forceinline__ void put_operands(const Chunk<kKeys>& chunk, unsigned char* memory) {
  using At = Room<kKeys>;
  using Shape = Chunk<kKeys>;
  const typename At::Keys Kq(memory + At::kKq), We(memory + At::kWe), Ke(memory + At::kKe);
  const int key = threadIdx.x % (kKeys / 2) * 2, place = place_of<kKeys>(key);
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const int t = threadIdx.x / (kKeys / 2) * 4 + n;
    const float from[2] = {__expf(chunk.sum[t][key]), __expf(chunk.sum[t][key + 1])},
                to[2] = {chunk.decay(t + 1, kTokens, key), chunk.decay(t + 1, kTokens, key + 1)};
    Kq.put(t, place, from[0] * chunk.kk[t][key], from[1] * chunk.kk[t][key + 1]);
    We.put(t, place, to[0] * chunk.w[t][key], to[1] * chunk.w[t][key + 1]);
    Ke.put(t, place, to[0] * chunk.k[t][key], to[1] * chunk.k[t][key + 1]);
  }
  if (threadIdx.x >= 128) return;
  const int t = threadIdx.x / 8, s = threadIdx.x % 8 * 2;
  const auto put = [&](int at, int kind) {
    PairRows(memory + at).put(t, s, chunk.pairs[kind][t][s], chunk.pairs[kind][t][s + 1]);
  };
  put(At::kRk, Shape::kRk), put(At::kRw, Shape::kRw);
  put(At::kUk, Shape::kUk), put(At::kT, Shape::kUw);
}

// The gradients of one key, from those of the results: a thread for what r reads and one for what
// kk does.
template <int kKeys>
__device__ __forceinline__ void finish(const DiagonalBackward& p, const Place& at,
                                       const Chunk<kKeys>& chunk,
                                       typename Room<kKeys>::Results& results) {
  const int key = threadIdx.x % kKeys, place = place_of<kKeys>(key);
  const bool second = threadIdx.x >= kKeys;
  const auto& query = second ? chunk.kk : chunk.r;
  const auto& with_k = results.pairs[second ? 2 : 0];
  const auto& with_w = results.pairs[second ? 3 : 1];
  const auto& of_query = results.of[second ? 1 : 0];
  float k[kTokens], w[kTokens], dk[kTokens] = {}, dw[kTokens] = {}, dq[kTokens], pass[kTokens],
                                decayed[kTokens];
#pragma unroll
  for (int t = 0; t < kTokens; ++t) k[t] = chunk.k[t][key], w[t] = chunk.w[t][key];
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    // r_t or kk_(t+1); the last of these is zero.
    const int row = second ? t + 1 : t;
    const float decay = chunk.decay(t, t + 1, key), q = query[row][key];
#pragma unroll
    for (int s = 0; s < t; ++s) decayed[s] *= decay;
    decayed[t] = 1;
    float sum = 0;
#pragma unroll
    for (int s = 0; s <= t; s += 4) {
      float dA[4], dB[4];
      load_four(&with_k[t][s], dA), load_four(&with_w[t][s], dB);
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        if (s + u > t) continue;
        const float a = dA[u] * decayed[s + u], b = dB[u] * decayed[s + u];
        sum = fmaf(a, k[s + u], sum), sum = fmaf(-b, w[s + u], sum);
        dk[s + u] = fmaf(a, q, dk[s + u]), dw[s + u] = fmaf(-b, q, dw[s + u]);
      }
    }
    const float from_state = row < kTokens ? of_query[row][place] : 0.f;
    dq[t] = fmaf(__expf(chunk.sum[t + 1][key]), from_state, sum), pass[t] = q * dq[t];
  }
  // k is finished by the first thread, w by the second.
#pragma unroll
  for (int t = 0; t < kTokens; ++t) results.other[second][t][key] = second ? dk[t] : dw[t];
  __syncthreads();
  const auto bits = [](const Rows& x, int64_t e) {
    return __uint_as_float(uint32_t(static_cast<const uint16_t*>(x.data)[e]) << 16);
  };
  const auto store = [](const Rows& x, int64_t e, float y) {
    static_cast<uint16_t*>(x.data)[e] = uint16_t(pack(y, 0.f));
  };
  const auto row_of = [&](const Rows& x, int t) {
    return row_at(x, at.b, at.first + t, 0, at.h) + key;
  };
  const bool real = key < p.K;
  float reach[kTokens];  // what reaches the end of the chunk
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    const float end = chunk.decay(t + 1, kTokens, key);
    const bool inside = real && at.first + t < p.T;
    const float own = second ? dw[t] + results.other[0][t][key] : dk[t] + results.other[1][t][key];
    const float to_state = end * (second ? -results.of[3][t][place] : results.of[2][t][place]);
    const float x = second ? w[t] : k[t];
    pass[t] -= x * own, reach[t] = x * to_state;
    if (!inside) continue;
    if (!second) {
      store(p.dk, row_of(p.dk, t), own + to_state);
      if (p.dq.data) store(p.dq, row_of(p.dq, t), dq[t] * float(p.scale));
    } else {
      const float total = own + to_state, rate = bits(p.rate, row_of(p.rate, t));
      store(p.drate, row_of(p.drate, t), chunk.kk[t][key] * total);
      const float read = t == 0 ? results.of[1][0][place] : dq[t == 0 ? 0 : t - 1];
      store(p.dkk, row_of(p.dkk, t), fmaf(rate, total, read));
    }
  }
  // From each token on: what is read, less what is written; before it: what reaches the end.
  float later = 0, reaching = 0;
  if (!second)
#pragma unroll
    for (int n = 0; n < 4; ++n) later += results.through[n][place];
  if (!second) later *= __expf(chunk.sum[kTokens][key]);
#pragma unroll
  for (int t = 0; t < kTokens; ++t) reaching += reach[t];
#pragma unroll
  for (int t = kTokens - 1; t >= 0; --t) {
    later += pass[t], reaching -= reach[t];
    pass[t] = later + reaching;
    if (second) results.other[0][t][key] = pass[t];
  }
  __syncthreads();
  if (second || !real) return;
#pragma unroll
  for (int t = 0; t < kTokens; ++t)
    if (at.first + t < p.T)
      static_cast<float*>(p.dlog_decay.data)[row_of(p.dlog_decay, t)] =
          pass[t] + results.other[0][t][key];
}

template <int kKeys>
__global__ void __launch_bounds__(2 * kKeys)
    gradients(const DiagonalBackward p, const uint16_t* states, const uint16_t* slopes,
              int64_t chunks, bool wide_keys, bool wide_v, bool wide_d) {
  using At = Room<kKeys>;
  constexpr int kThreads = 2 * kKeys;
  extern __shared__ __align__(16) unsigned char memory[];
  auto& chunk = *reinterpret_cast<Chunk<kKeys>*>(memory + At::kChunk);
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
    fetch_parts<kThreads>(S, states + from), fetch_parts<kThreads>(G, slopes + from);
    if (threadIdx.x < 128) {
      fetch_values(V, p, p.v, at.b, at.h, at.first, int64_t(group) * kColumns, wide_v);
      fetch_values(D, p, p.d_o, at.b, at.h, at.first, int64_t(group) * kColumns, wide_d);
    }
    copy_commit();
  };
  ask(0);
  chunk.load(p, at.b, at.h, at.first, wide_keys);
  chunk.fill();
  put_operands<kKeys>(chunk, memory);
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
#pragma unroll
      for (int i = 0; i < kKeys; i += 16) multiply(x[0], x[1], S.a_rows(v, i), Kq.b_rows(i, 0));
      multiply(x[0], x[1], V.a_columns(v, 0), Uk.b_rows(0, 0));
      multiply(u[0], u[1], as_fragment<2>(x[0], x[1]), T.b_rows(0, 0));
      put_tile(U, v, u);
    }
    if (At::kWarps == 4 || warp >= 4) {
      Tile x = {}, y = {}, dv = {};
      const auto d = D.a_columns(v, 0);
#pragma unroll
      for (int i = 0; i < kKeys; i += 16) {
        const auto a = G.a_rows(v, i);
        multiply(x[0], x[1], a, We.b_rows(i, 0));
        multiply(dv[0], dv[1], a, Ke.b_rows(i, 0));
      }
      multiply(x[0], x[1], d, Rw.b_columns(0, 0));
      multiply(dv[0], dv[1], d, Rk.b_columns(0, 0));
      multiply(y[0], y[1], as_fragment<2>(x[0], x[1]), T.b_columns(0, 0));
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) y[j][i] = -y[j][i];
      put_tile(Y, v, y);
      multiply(dv[0], dv[1], as_fragment<2>(y[0], y[1]), Uk.b_columns(0, 0));
      store_across(dv, p, p.dv, at.b, at.h, at.first, int64_t(group) * kColumns + v);
    }
    __syncthreads();
    const int key = warp * 16;
#pragma unroll
    for (int i = 0; i < kColumns; i += 16) {
      const auto s = S.b_columns(i, key), slope = G.b_columns(i, key);
      const auto d = D.a_rows(0, i), value = V.a_rows(0, i);
      const auto y = Y.a_columns(0, i), u = U.a_columns(0, i);
      multiply(of[0][0], of[0][1], d, s), multiply(of[1][0], of[1][1], y, s);
      multiply(of[2][0], of[2][1], value, slope), multiply(of[3][0], of[3][1], u, slope);
      if (warp == 0) multiply(pairs[0], pairs[1], d, V.b_rows(i, 0));
      if (warp == 1) multiply(pairs[0], pairs[1], d, U.b_columns(i, 0));
      if (warp == 2) multiply(pairs[0], pairs[1], y, V.b_rows(i, 0));
      if (warp == 3) multiply(pairs[0], pairs[1], y, U.b_columns(i, 0));
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
  finish<kKeys>(p, at, chunk, results);
}

}  // namespace
}  // namespace lrnn::kernels::cuda::rwkv7

namespace lrnn::kernels::cuda {

bool rwkv7_chunk_fits(const DiagonalInputs& p) {
  if (rwkv7_chunk_keys(p) == 0) return false;
  size_t bytes = 0;  // of the largest of the kernels
  rwkv7::with_keys(p, [&](auto keys) { bytes = rwkv7::Room<decltype(keys)::value>::kBytes; });
  int device = 0, most = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return bytes <= size_t(most);
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
    constexpr size_t kBytes = rwkv7::Room<kKeys>::kBytes;
    allow_shared(rwkv7::gradients<kKeys>, kBytes);
    rwkv7::gradients<kKeys><<<rwkv7::blocks_of(p.B * p.H * chunks), 2 * kKeys, kBytes,
                              static_cast<cudaStream_t>(stream)>>>(
        p, static_cast<const uint16_t*>(p.states), static_cast<const uint16_t*>(gradients), chunks,
        rwkv7::keys_lie_on_packs(p), lies_on_packs(p.v, p.type), lies_on_packs(p.d_o, p.type));
  });
  check_launch("rwkv7");
}

}  // namespace lrnn::kernels::cuda
