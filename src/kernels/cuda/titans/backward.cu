#include <algorithm>

#include "kernels/cuda/titans/titans.cuh"

// Chunks of eight tokens from the last to the first. The states of a chunk are computed again from
// those forward kept and stay in registers; GM and GS, the gradients of memory and momentum, are
// followed back as in kernels/cpu/titans_backward.cpp. Sums over values (dq, dk) and over both
// (those of the gates) go over a warp, then over warps, and are left for every group of columns, to
// be added up by `finish`.
namespace lrnn::kernels::cuda {
namespace {

enum GateSum { kDtheta, kDeta, kDkeep, kGateSums };

// Sums of one token over the columns of a warp.
template <class R, int kRows> struct TitansSums {
  R dq[kRows] = {}, dk[kRows] = {}, gates[kGateSums] = {};

  // [2][size], then the gates' numbers.
  __device__ __forceinline__ void leave(R* to, int size, int k0, int lanes) {
    for (int d = lanes; d < 32; d *= 2)
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        dq[i] += __shfl_xor_sync(0xffffffffu, dq[i], d);
        dk[i] += __shfl_xor_sync(0xffffffffu, dk[i], d);
      }
#pragma unroll
    for (int g = 0; g < kGateSums; ++g) gates[g] = sum_lanes<32>(gates[g]);
    if (int(threadIdx.x % 32) < lanes) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) to[k0 + i] = dq[i], to[size + k0 + i] = dk[i];
    }
    if (threadIdx.x % 32 == 0) {
#pragma unroll
      for (int g = 0; g < kGateSums; ++g) to[2 * size + g] = gates[g];
    }
  }
};

template <class R, int kRows, int kColumns>
__global__ void __launch_bounds__(kDiagonalMostThreads, 1)
    backward(const TitansBackward p, const DiagonalPlan plan, R* sums) {
  extern __shared__ __align__(16) unsigned char memory[];
  constexpr int kUnroll = sizeof(R) == 4 ? kDiagonalStage : 1;  // doubles would not fit
  const int size = plan.lanes * kRows, warps = plan.threads / 32, one = 2 * size + kGateSums;
  const TitansStage<R> stage(reinterpret_cast<R*>(memory), size, plan.columns);
  R* const d_out = stage.end();
  R* const totals = d_out + kDiagonalStage * plan.columns;  // [2][warps][one]
  const DiagonalPlace<kRows, kColumns> at(p, plan);
  const Span span = span_of(p, at.s);
  const int64_t state_size = p.K * p.V;
  R GM[kRows][kColumns] = {}, GS[kRows][kColumns] = {};
  load_state(GM, p.d_final_state, p, at), load_state(GS, p.d_final_momentum, p, at);
  const int64_t chunks = (span.length + kDiagonalStage - 1) / kDiagonalStage;
  for (int64_t chunk = chunks - 1; chunk >= 0; --chunk) {
    const DiagonalTokens of(span, at.h, chunk * kDiagonalStage);
    __syncthreads();
    stage.fill(p, of, size, at.v0, plan.columns);
    of.stage(d_out, p.type, p.d_o, at.v0, p.V, plan.columns);
    __syncthreads();
    R M[kRows][kColumns] = {}, S[kRows][kColumns] = {};
    R M_before[kDiagonalStage][kRows][kColumns], S_before[kDiagonalStage][kRows][kColumns];
    const R* const from =
        static_cast<const R*>(p.states) +
        ((first_kept(p, at.s, kDiagonalStage) + chunk) * p.H + at.h) * 2 * state_size;
    each_element(
        p, at, [&](int i, int j, int64_t e) { M[i][j] = from[e], S[i][j] = from[state_size + e]; });
#pragma unroll kUnroll
    for (int t = 0; t < kDiagonalStage; ++t) {
      if (t >= of.count) continue;  // the same for all threads
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kColumns; ++j) M_before[t][i][j] = M[i][j], S_before[t][i][j] = S[i][j];
      R k[kRows];
      load_run(stage.k + t * size + at.k0, k);
      titans_step(M, S, k, stage.v + t * plan.columns + at.c0, stage.gates + 3 * t, plan.lanes);
    }
#pragma unroll kUnroll
    for (int t = kDiagonalStage - 1; t >= 0; --t) {
      if (t >= of.count) continue;
      const int key = t * size + at.k0, value = t * plan.columns + at.c0;
      const int64_t token = span.t0 + of.first + t;
      const R theta = stage.gates[3 * t], eta = stage.gates[3 * t + 1],
              keep = stage.gates[3 * t + 2];
      R q[kRows], k[kRows];
      load_run(stage.q + key, q), load_run(stage.k + key, k);
      TitansSums<R, kRows> sum;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const R d_o = R(p.scale) * d_out[value + j];
        R w = 0, error = 0;
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          GM[i][j] += q[i] * d_o, GS[i][j] += GM[i][j];
          w += GS[i][j] * k[i], error += M_before[t][i][j] * k[i];
          sum.dq[i] += M[i][j] * d_o;
        }
        w = sum_keys(w, plan.lanes), error = sum_keys(error, plan.lanes) - stage.v[value + j];
        const R de = -theta * w, step = -theta * error;
        if (at.k0 == 0) {  // one of those that share the column
          sum.gates[kDtheta] -= error * w;
          if (at.v0 + at.c0 + j < p.V)
            store_as<R>(p.type, p.dv.data, row_at(p.dv, span.b, token, 0, at.h) + at.v0 + at.c0 + j,
                        -de);
        }
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          const R before = M_before[t][i][j];
          sum.dk[i] += step * GS[i][j] + de * before;
          sum.gates[kDkeep] += GM[i][j] * before;
          sum.gates[kDeta] += GS[i][j] * S_before[t][i][j];
          GM[i][j] = keep * GM[i][j] + k[i] * de, GS[i][j] *= eta;
          M[i][j] = before;
        }
      }
      // Over the columns of the warp, of the block, and out. Two buffers, one barrier.
      R* const buffer = totals + (t & 1) * warps * one;
      sum.leave(buffer + int(threadIdx.x / 32) * one, size, at.k0, plan.lanes);
      __syncthreads();
      R* const out = sums + (((int64_t(at.group) * p.B + span.b) * p.T + token) * p.H + at.h) *
                                (2 * p.K + kGateSums);
      for (int i = threadIdx.x; i < one; i += blockDim.x) {
        const int kind = i < 2 * size ? i / size : 2, n = i - kind * size;
        if (kind < 2 && n >= p.K) continue;
        R total = 0;
        for (int warp = 0; warp < warps; ++warp) total += buffer[warp * one + i];
        out[kind * p.K + n] = total;
      }
    }
  }
  store_state(GM, p.dstate, p, at), store_state(GS, p.dmomentum, p, at);
}

// One of the sums of a token and head.
template <class R>
__global__ void __launch_bounds__(256) finish(const TitansBackward p, const R* sums, int groups) {
  const int64_t each = 2 * p.K + kGateSums, all = p.B * p.T * p.H * each,
                e = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (e >= all) return;
  const int64_t row = e / each, n = e - row * each, token = row / p.H, h = row - token * p.H,
                b = token / p.T, t = token - b * p.T;
  R total = 0;
  for (int g = 0; g < groups; ++g) total += sums[g * all + e];
  if (n < p.K) {
    if (p.dq.data) store_as<R>(p.type, p.dq.data, row_at(p.dq, b, t, 0, h) + n, total);
  } else if (n < 2 * p.K) {
    store_as<R>(p.type, p.dk.data, row_at(p.dk, b, t, 0, h) + n - p.K, total);
  } else if (n == 2 * p.K + kDtheta) {
    static_cast<R*>(p.dtheta)[row] = total;
  } else if (n == 2 * p.K + kDeta) {
    static_cast<R*>(p.deta)[row] = total;
  } else {
    static_cast<R*>(p.dalpha)[row] = -total;
  }
}

}  // namespace

void titans_backward(const TitansBackward& p, void* sums, void* stream) {
  const DiagonalLaunch launch{"titans", static_cast<cudaStream_t>(stream)};
  launch.each_tile<kTitansColumns>(
      p, [&]<class R, int kRows, int kColumns>(const DiagonalPlan& plan) {
        const int64_t size = int64_t(plan.lanes) * kRows, columns = plan.columns;
        const size_t totals = 2 * size_t(plan.threads / 32) * size_t(2 * size + kGateSums);
        const size_t numbers =
            TitansStage<R>::numbers(size, columns) + size_t(kDiagonalStage * columns) + totals;
        R* const to = static_cast<R*>(sums);
        launch.run(backward<R, kRows, kColumns>, sizeof(R) * numbers, plan, p, to);
        launch.finish(finish<R>, p.B * p.T * p.H * titans_sums(p), p, to, plan.groups);
      });
}

}  // namespace lrnn::kernels::cuda
