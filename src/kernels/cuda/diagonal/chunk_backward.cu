#include <type_traits>

#include "kernels/cuda/diagonal/chunk.cuh"
#include "kernels/cuda/tile/pack.cuh"

// Chunks from the last to the first, with the gradient G of the state after the chunk:
//
//   dq = p S d_o + sum over s of dA_ts k_s decay(s to t)     dA = d_o v^T
//   dk = r G v + sum over t of dA_ts q_t decay(s to t)       dv = A^T d_o + (r k)^T G
//   G before = r_0 G + (p q) d_o^T
//
// The gradient of a decay's logarithm counts what passes through it: pairs of a token before it and
// one from it on, states that are read from it on, tokens before it that reach the end, and the
// state that passes through the whole chunk.
namespace lrnn::kernels::cuda {
namespace {

template <int kKeys> struct Layout : GlaLayout<kKeys> {
  using typename GlaLayout<kKeys>::Shape;
  static constexpr size_t kD = GlaLayout<kKeys>::kEnd, kS = kD + Shape::Values::kBytes,
                          kG = kS + Shape::State::kBytes, kA = kG + Shape::State::kBytes,
                          kBytes = kA + Shape::Pairs::kBytes;
};

template <int kKeys> struct Shared {
  float dq[kGlaTokens][kKeys + 4], dk[kGlaTokens][kKeys + 4];  // of the states alone
  alignas(16) float dA[kGlaTokens][kGlaTokens];
  float decay[kKeys], through[kKeys];  // through: G r_0 S, over the columns
};

// 16 tokens of 16 columns.
template <class To>
__device__ __forceinline__ void put_results(To* to, int g, int c, int column,
                                            const float (&x)[2][4]) {
#pragma unroll
  for (int j = 0; j < 2; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) to[g + i / 2 * 8][column + 8 * j + 2 * c + i % 2] = x[j][i];
}

// What a thread has of its key in a chunk: with the decays from its beginning and to its end.
struct KeyRun {
  GlaKey key;
  float begin[kGlaTokens], end[kGlaTokens];
  __device__ __forceinline__ KeyRun(const GlaKeyRaw& raw, float scale) : key(raw, scale) {
    key.products(begin, end);
  }
};

// dq, dk and the decay's gradient of a key, from dA and what comes from the states.
template <int kKeys>
__device__ __forceinline__ void store_key_gradients(const DiagonalBackward& p,
                                                    const GlaPlace<kKeys>& at, const KeyRun& run,
                                                    const Shared<kKeys>& shared, int64_t first,
                                                    float* sums) {
  const GlaKey& key = run.key;
  float decayed[kGlaTokens], dk[kGlaTokens] = {}, passing[kGlaTokens];
  const int64_t rows = p.B * p.T * p.H;
  const auto store = [&](int kind, int t, float x) {
    if (at.key >= p.K || first + t >= at.span.length) return;
    const int64_t row = (at.span.b * p.T + at.span.t0 + first + t) * p.H + at.h;
    sums[((int64_t(at.group) * 3 + kind) * rows + row) * p.K + at.key] = x;
  };
#pragma unroll
  for (int t = 0; t < kGlaTokens; ++t) {
    float dA[kGlaTokens], dq = 0;
#pragma unroll
    for (int s = 0; s <= t; s += 4) {
      const float4 x = *reinterpret_cast<const float4*>(&shared.dA[t][s]);
      dA[s] = x.x, dA[s + 1] = x.y, dA[s + 2] = x.z, dA[s + 3] = x.w;
    }
#pragma unroll
    for (int s = 0; s < t; ++s) decayed[s] *= key.decay[t];
    decayed[t] = 1;
#pragma unroll
    for (int s = 0; s <= t; ++s) {
      const float x = dA[s] * decayed[s];
      dq = fmaf(x, key.k[s], dq), dk[s] = fmaf(x, key.q[t], dk[s]);
    }
    const float from_state = run.begin[t] * shared.dq[t][at.key];
    passing[t] = key.q[t] * (dq + from_state);
    store(0, t, (dq + from_state) * float(p.scale));
  }
  // From each token on: what is read, less what is written; before it: what reaches the end.
  float later = shared.through[at.key], reaching = 0;
#pragma unroll
  for (int t = 0; t < kGlaTokens; ++t) {
    const float to_state = run.end[t] * shared.dk[t][at.key];
    passing[t] -= key.k[t] * dk[t];
    store(1, t, dk[t] + to_state);
    reaching += key.k[t] * to_state, dk[t] = key.k[t] * to_state;
  }
#pragma unroll
  for (int t = kGlaTokens - 1; t >= 0; --t) {
    later += passing[t], reaching -= dk[t];
    store(2, t, later + reaching);
  }
}

// The state before a chunk and A, as forward kept them.
template <int kKeys>
__device__ __forceinline__ void load_kept(const DiagonalBackward& p, const GlaKept& kept,
                                          const GlaPlace<kKeys>& at, int64_t chunk,
                                          const typename GlaShape<kKeys>::State& S,
                                          const typename GlaShape<kKeys>::Pairs& A) {
  const float4* const from = reinterpret_cast<const float4*>(at.state(kept.states, p, chunk));
  for (int i = threadIdx.x; i < kKeys * kGlaColumns / 8; i += kGlaThreads) {
    const float4 x = from[2 * i], y = from[2 * i + 1];
    const float eight[8] = {x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w};
    S.put_eight(i / (kGlaColumns / 8), i % (kGlaColumns / 8) * 8, eight);
  }
  const int t = threadIdx.x / 8, s = threadIdx.x % 8 * 2;
  float2 pair = make_float2(0, 0);
  if (chunk * kGlaTokens + t < at.span.length) {
    const int64_t token = (at.span.b * p.T + at.span.t0 + chunk * kGlaTokens + t) * p.H + at.h;
    pair = *reinterpret_cast<const float2*>(kept.A + token * kGlaTokens + s);
  }
  A.put(t, s, pair.x, pair.y);
}

template <int kKeys>
__global__ void __launch_bounds__(kGlaThreads, 1)
    backward(const DiagonalBackward p, const GlaKept kept, float* sums, const bool wide_v,
             const bool wide_d) {
  using At = Layout<kKeys>;
  using Shape = GlaShape<kKeys>;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ Shared<kKeys> shared;
  const typename Shape::Keys q(memory + At::kQ), k(memory + At::kK);
  const typename Shape::Values v(memory + At::kV), D(memory + At::kD);
  const typename Shape::State S(memory + At::kS), G(memory + At::kG);
  const typename Shape::Pairs A(memory + At::kA);
  const GlaPlace<kKeys> at(p);
  const bool has_key = threadIdx.x < kKeys;
  typename Shape::Tiles grad = {};
  if (p.d_final_state)
    each_of_state<kKeys>(p, at, grad, [&](float& x, int64_t e) {
      x = static_cast<const float*>(p.d_final_state)[e];
    });
  const int64_t chunks = (at.span.length + kGlaTokens - 1) / kGlaTokens;
  GlaKeyRaw key_raw;
  GlaValuesRaw value_raw, slope_raw;
  const auto fetch = [&](int64_t first) {
    key_raw.load(p, at, first);
    value_raw.load(p, p.v, at, first, wide_v);
    slope_raw.load(p, p.d_o, at, first, wide_d);
  };
  if (chunks > 0) fetch((chunks - 1) * kGlaTokens);
  for (int64_t chunk = chunks - 1; chunk >= 0; --chunk) {
    const int64_t first = chunk * kGlaTokens;
    const KeyRun run(key_raw, float(p.scale));
    if (has_key) {
      put_tokens(q, at.key, run.key.q, run.begin), put_tokens(k, at.key, run.key.k, run.end);
      shared.decay[at.key] = run.begin[kGlaTokens - 1];
    }
    value_raw.put(v), slope_raw.put(D);
    put_tiles<kKeys>(G, at, grad, nullptr);
    load_kept<kKeys>(p, kept, at, chunk, S, A);
    if (chunk > 0) fetch(first - kGlaTokens);
    __syncthreads();
    if (at.warp == 0) {
      float x[2][4] = {};
#pragma unroll
      for (int i = 0; i < kGlaColumns; i += 16)
        multiply(x[0], x[1], D.a_rows(0, i), v.b_rows(i, 0));
      put_results(shared.dA, at.g, at.c, 0, x);
    }
#pragma unroll
    for (int j = 0; j < Shape::kTiles; ++j) {
      float dq[2][4] = {}, dk[2][4] = {};
#pragma unroll
      for (int i = 0; i < kGlaColumns; i += 16) {
        multiply(dq[0], dq[1], D.a_rows(0, i), S.b_rows(i, at.tile_key(j)));
        multiply(dk[0], dk[1], v.a_rows(0, i), G.b_rows(i, at.tile_key(j)));
      }
      put_results(shared.dq, at.g, at.c, at.tile_key(j), dq);
      put_results(shared.dk, at.g, at.c, at.tile_key(j), dk);
    }
    {
      float dv[2][4] = {};
      multiply(dv[0], dv[1], A.a_columns(0, 0), D.b_columns(0, 16 * at.warp));
#pragma unroll
      for (int i = 0; i < kKeys; i += 16)
        multiply(dv[0], dv[1], k.a_columns(0, i), G.b_columns(i, 16 * at.warp));
      store_values<kKeys>(p, p.dv, at, first, 16 * at.warp, dv);
    }
    times_keys<kKeys>(grad, at, shared.decay);
#pragma unroll
    for (int i = 0; i < Shape::kTiles; ++i) {
      float through[2] = {};
#pragma unroll
      for (int j = 0; j < kGlaColumns / 8; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const float2 x = S.get(at.tile_key(i) + at.g + 8 * r, 8 * j + 2 * at.c);
          through[r] += grad[i][j][2 * r] * x.x + grad[i][j][2 * r + 1] * x.y;
        }
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float sum = sum_lanes<4>(through[r]);
        if (at.c == 0) shared.through[at.tile_key(i) + at.g + 8 * r] = sum;
      }
      const auto a = q.a_rows(at.tile_key(i), 0);
#pragma unroll
      for (int j = 0; j < kGlaColumns / 8; j += 2)
        multiply(grad[i][j], grad[i][j + 1], a, D.b_columns(0, 8 * j));
    }
    __syncthreads();
    if (has_key) store_key_gradients(p, at, run, shared, first, sums);
    __syncthreads();
  }
  if (!p.dstate) return;
  each_of_state<kKeys>(p, at, grad,
                       [&](float& x, int64_t e) { static_cast<float*>(p.dstate)[e] = x; });
}

// Adds the groups of columns.
__global__ void __launch_bounds__(256)
    finish(const DiagonalBackward p, const float* sums, int groups) {
  const int64_t elements = p.B * p.T * p.H * p.K, e = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (e >= elements) return;
  const int64_t row = e / p.K, n = e - row * p.K, token = row / p.H, h = row - token * p.H,
                b = token / p.T, t = token - b * p.T;
  float total[3] = {};
  for (int g = 0; g < groups; ++g)
#pragma unroll
    for (int kind = 0; kind < 3; ++kind)
      total[kind] += sums[(int64_t(g) * 3 + kind) * elements + e];
  if (p.dq.data) store_as<float>(p.type, p.dq.data, row_at(p.dq, b, t, 0, h) + n, total[0]);
  store_as<float>(p.type, p.dk.data, row_at(p.dk, b, t, 0, h) + n, total[1]);
  static_cast<float*>(p.dlog_decay.data)[row_at(p.dlog_decay, b, t, 0, h) + n] = total[2];
}

}  // namespace

int64_t diagonal_chunk_groups(const DiagonalInputs& p) {
  return (p.V + kGlaColumns - 1) / kGlaColumns;
}

bool diagonal_chunk_fits(const DiagonalInputs& p) {
  if (diagonal_chunk_keys(p) == 0) return false;
  size_t bytes = 0;
  with_gla_keys(p, [&](auto keys) {
    constexpr int kKeys = decltype(keys)::value;
    bytes = Layout<kKeys>::kBytes + sizeof(Shared<kKeys>);
  });
  int device = 0, most = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return bytes <= size_t(most);
}

void diagonal_chunk_backward(const DiagonalBackward& p, void* sums, void* stream) {
  if (p.S * p.H == 0) return;
  const GlaKept kept(p, static_cast<float*>(const_cast<void*>(p.states)));
  const auto on = static_cast<cudaStream_t>(stream);
  float* const to = static_cast<float*>(sums);
  with_gla_keys(p, [&](auto keys) {
    constexpr int kKeys = decltype(keys)::value;
    constexpr size_t kBytes = Layout<kKeys>::kBytes;
    allow_shared(backward<kKeys>, kBytes);
    backward<kKeys><<<gla_blocks(p), kGlaThreads, kBytes, on>>>(
        p, kept, to, lies_on_packs(p.v, p.type), lies_on_packs(p.d_o, p.type));
  });
  const int64_t blocks = (p.B * p.T * p.H * p.K + 255) / 256;
  check(blocks < (int64_t(1) << 31), "[diagonal] too many keys for a grid");
  if (blocks > 0) finish<<<unsigned(blocks), 256, 0, on>>>(p, to, int(diagonal_chunk_groups(p)));
  check_launch("diagonal");
}

}  // namespace lrnn::kernels::cuda
