#include <algorithm>

#include "kernels/cuda/diagonal/diagonal.cuh"

// Chunks of eight tokens from the last to the first. The states of a chunk are computed again from
// the one forward kept and stay in registers; G, the gradient of the state, is followed back:
//
//   G += scale q do^T,  dv = G^T k,  dp = -G^T w,  dS' = diag(a) G + kk dp^T
//
// Sums over values (dq, dk, of G S', of G p and of S' dp) go over a warp's columns, then over
// warps, and are left for every group of columns, to be added up by `finish`.
namespace lrnn::kernels::cuda {
namespace {

enum Sum { kDq, kDk, kDdecay, kDw, kDkk };

template <class R, int kRows, int kColumns>
__global__ void __launch_bounds__(kDiagonalMostThreads, 1)
    backward(const DiagonalBackward p, const DiagonalPlan plan, R* sums) {
  extern __shared__ __align__(16) unsigned char memory[];
  constexpr int kUnroll = sizeof(R) == 4 ? kDiagonalStage : 1;  // doubles would not fit
  const int size = plan.lanes * kRows, warps = plan.threads / 32;
  const bool rank_one = p.kk.data;
  const int kinds = rank_one ? 5 : 3;
  const DiagonalKeys<R> keys(reinterpret_cast<R*>(memory), size);
  R* const values = reinterpret_cast<R*>(memory) + DiagonalKeys<R>::kCount * kDiagonalStage * size;
  R* const d_out = values + kDiagonalStage * plan.columns;
  R* const totals = d_out + kDiagonalStage * plan.columns;  // [2][warps][kinds][size]
  const DiagonalPlace<kRows, kColumns> at(p, plan);
  const Span span = span_of(p, at.s);
  const int64_t state_size = p.K * p.V;
  R G[kRows][kColumns] = {};
  load_state(G, p.d_final_state, p, at);
  const int64_t chunks = (span.length + kDiagonalStage - 1) / kDiagonalStage;
  for (int64_t chunk = chunks - 1; chunk >= 0; --chunk) {
    const DiagonalTokens of(span, at.h, chunk * kDiagonalStage);
    __syncthreads();
    keys.fill(p, of, size);
    of.stage(values, p.type, p.v, at.v0, p.V, plan.columns);
    of.stage(d_out, p.type, p.d_o, at.v0, p.V, plan.columns);
    __syncthreads();
    R S[kRows][kColumns] = {}, before[kDiagonalStage][kRows][kColumns];
    const R* const from = static_cast<const R*>(p.states) +
                          ((first_kept(p, at.s, kDiagonalStage) + chunk) * p.H + at.h) * state_size;
    each_element(p, at, [&](int i, int j, int64_t e) { S[i][j] = from[e]; });
#pragma unroll kUnroll
    for (int t = 0; t < kDiagonalStage; ++t) {
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kColumns; ++j) before[t][i][j] = S[i][j];
      diagonal_step(S, keys, t * size + at.k0, values + t * plan.columns + at.c0, rank_one,
                    plan.lanes);
    }
#pragma unroll kUnroll
    for (int t = kDiagonalStage - 1; t >= 0; --t) {
      const int key = t * size + at.k0, value = t * plan.columns + at.c0;
      const int64_t token = span.t0 + of.first + t;
      R q[kRows], k[kRows], a[kRows], v[kColumns], d_o[kColumns], sum[5][kRows] = {};
      load_run(keys.q + key, q), load_run(keys.k + key, k), load_run(keys.decay + key, a);
      load_run(values + value, v), load_run(d_out + value, d_o);
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const R scaled = R(p.scale) * d_o[j];
        R dv = 0;
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          G[i][j] += q[i] * scaled, dv += G[i][j] * k[i];
          sum[kDq][i] += S[i][j] * scaled, sum[kDk][i] += G[i][j] * v[j];
          sum[kDdecay][i] += G[i][j] * before[t][i][j];
        }
        dv = sum_keys(dv, plan.lanes);
        if (at.k0 == 0 && t < of.count && at.v0 + at.c0 + j < p.V)
          store_as<R>(p.type, p.dv.data, row_at(p.dv, span.b, token, 0, at.h) + at.v0 + at.c0 + j,
                      dv);
      }
      if (rank_one) {
        R kk[kRows], w[kRows];
        load_run(keys.kk + key, kk), load_run(keys.w + key, w);
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          R read = 0, dread = 0;
#pragma unroll
          for (int i = 0; i < kRows; ++i) read += before[t][i][j] * kk[i], dread -= G[i][j] * w[i];
          read = sum_keys(read, plan.lanes), dread = sum_keys(dread, plan.lanes);
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
            sum[kDw][i] -= G[i][j] * read, sum[kDkk][i] += before[t][i][j] * dread;
            G[i][j] = a[i] * G[i][j] + kk[i] * dread;
          }
        }
      } else {
#pragma unroll
        for (int i = 0; i < kRows; ++i)
#pragma unroll
          for (int j = 0; j < kColumns; ++j) G[i][j] *= a[i];
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kColumns; ++j) S[i][j] = before[t][i][j];
      // Over the columns of the warp, of the block, and out. Two buffers, one barrier.
      R* const buffer = totals + (t & 1) * warps * kinds * size;
      for (int d = plan.lanes; d < 32; d *= 2)
#pragma unroll
        for (int kind = 0; kind < 5; ++kind) {
          if (kind >= kinds) continue;
#pragma unroll
          for (int i = 0; i < kRows; ++i)
            sum[kind][i] += __shfl_xor_sync(0xffffffffu, sum[kind][i], d);
        }
      if (int(threadIdx.x % 32) < plan.lanes) {
#pragma unroll
        for (int kind = 0; kind < 5; ++kind) {
          if (kind >= kinds) continue;
#pragma unroll
          for (int i = 0; i < kRows; ++i)
            buffer[(int(threadIdx.x / 32) * kinds + kind) * size + at.k0 + i] = sum[kind][i];
        }
      }
      __syncthreads();
      if (t >= of.count) continue;
      const int64_t row = (span.b * p.T + token) * p.H + at.h, rows = p.B * p.T * p.H;
      for (int i = threadIdx.x; i < kinds * size; i += blockDim.x) {
        const int kind = i / size, n = i % size;
        if (n >= p.K) continue;
        R total = 0;
        for (int warp = 0; warp < warps; ++warp) total += buffer[warp * kinds * size + i];
        sums[((int64_t(at.group) * kinds + kind) * rows + row) * p.K + n] = total;
      }
    }
  }
  store_state(G, p.dstate, p, at);
}

// One element of the K-vectors' gradients.
template <class R>
__global__ void __launch_bounds__(256) finish(const DiagonalBackward p, const R* sums, int groups) {
  const int64_t elements = p.B * p.T * p.H * p.K, e = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (e >= elements) return;
  const int64_t row = e / p.K, n = e - row * p.K, token = row / p.H, h = row - token * p.H,
                b = token / p.T, t = token - b * p.T;
  const int kinds = p.kk.data ? 5 : 3;
  const auto total = [&](int kind) {
    R sum = 0;
    for (int g = 0; g < groups; ++g) sum += sums[(int64_t(g) * kinds + kind) * elements + e];
    return sum;
  };
  const auto store = [&](const Rows& to, Type type, R x) {
    store_as<R>(type, to.data, row_at(to, b, t, 0, h) + n, x);
  };
  const Type wide = sizeof(R) == 8 ? Type::kFloat64 : Type::kFloat32;
  if (p.dq.data) store(p.dq, p.type, total(kDq));
  store(p.dk, p.type, total(kDk));
  const R slope = exp_of(load_as<R>(wide, p.log_decay.data, row_at(p.log_decay, b, t, 0, h) + n));
  store(p.dlog_decay, wide, total(kDdecay) * slope * R(p.negative ? 2 : 1));
  if (!p.kk.data) return;
  const R kk = load_as<R>(p.type, p.kk.data, row_at(p.kk, b, t, 0, h) + n),
          rate = load_as<R>(p.type, p.rate.data, row_at(p.rate, b, t, 0, h) + n), dw = total(kDw);
  store(p.dkk, p.type, dw * rate + total(kDkk));
  store(p.drate, p.type, dw * kk);
}

}  // namespace

void diagonal_backward(const DiagonalBackward& p, void* sums, void* stream) {
  const DiagonalLaunch launch{"diagonal", static_cast<cudaStream_t>(stream)};
  launch.each_tile<kDiagonalColumns>(
      p, [&]<class R, int kRows, int kColumns>(const DiagonalPlan& plan) {
        R* const to = static_cast<R*>(sums);
        const size_t values = diagonal_backward_stage(plan, kRows, p.kk.data ? 5 : 3);
        launch.run(backward<R, kRows, kColumns>, sizeof(R) * values, plan, p, to);
        launch.finish(finish<R>, p.B * p.T * p.H * p.K, p, to, plan.groups);
      });
}

}  // namespace lrnn::kernels::cuda
