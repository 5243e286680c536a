#pragma once
#include "kernels/cuda/tile/common.cuh"

// How the exact kernels hold a state [K,V]: a thread keeps kRows rows of one column in registers,
// kLanes neighbouring threads share the column. Rows go to lanes in fours, so that the lanes read
// neighbouring 16 bytes of a key in shared memory.
namespace lrnn::kernels::cuda {

// Micro-steps whose inputs are in shared memory at once; doubles must fit chips with 99 KB of it.
template <class R> constexpr int kStage = sizeof(R) == 8 ? 8 : 16;

template <int kRows, int kLanes> struct Column {
  static constexpr int kHeight = kRows * kLanes;
  static __device__ __forceinline__ int row(int r, int lane) {
    return (r / 4) * 4 * kLanes + lane * 4 + r % 4;
  }
};

// The inputs of one stage. A micro-step may begin a token (its gate applies) or end it (its query
// reads), both for N = 1.
template <class R, int kHeight> struct Stage {
  alignas(16) R k[kStage<R>][kHeight];
  alignas(16) R q[kStage<R>][kHeight];
  R beta[kStage<R>], gate[kStage<R>];
  int64_t k_at[kStage<R>], q_at[kStage<R>], v_at[kStage<R>],
      o_at[kStage<R>];  // offsets of the rows
  bool begins[kStage<R>], ends[kStage<R>];
};
// The same with a gate per key channel.
template <class R, int kHeight> struct ChannelStage : Stage<R, kHeight> {
  alignas(16) R gates[kStage<R>][kHeight];
};

// Micro-steps first .. first+count-1 of a sequence and a head.
struct Steps {
  Span span;
  int64_t h, first;
  int count;
};
// `v` and `o` are read or written by column.
template <class Io, class R, int kHeight>
__device__ __forceinline__ void fill(Stage<R, kHeight>& stage, const DeltaProductInputs& p,
                                     const Rows& v, const Rows& o, const Steps& of) {
  const auto& [span, h, first, count] = of;
  const int tid = threadIdx.x;
  if (tid < count) {
    const uint32_t m = uint32_t(first) + tid, N = uint32_t(p.N), t = m / N, j = m - t * N;
    stage.k_at[tid] = row_at(p.k, span.b, span.t0 + t, j, h);
    stage.q_at[tid] = row_at(p.q, span.b, span.t0 + t, 0, h);
    stage.v_at[tid] = row_at(v, span.b, span.t0 + t, j, h);
    stage.o_at[tid] = row_at(o, span.b, span.t0 + t, 0, h);
    stage.begins[tid] = j == 0, stage.ends[tid] = j == p.N - 1;
    const int64_t token = span.b * p.T + span.t0 + t;
    stage.beta[tid] = static_cast<const R*>(p.beta)[(token * p.N + j) * p.H + h];
    stage.gate[tid] = p.log_gate && !p.channels && j == 0
                          ? exp_of(static_cast<const R*>(p.log_gate)[token * p.H + h])
                          : R(1);
  }
  __syncthreads();
  // Rows shorter than the column are read again at their end, and then not used.
  const int height = int(p.K);
  const auto rows = [&](const SharedRows& x, const int64_t(&row_at)[kStage<R>],
                        R(&to)[kStage<R>][kHeight]) {
    copy_each<R>(
        count * kHeight,
        [&](int at) {
          return load<R, Io>(x.data, row_at[at / kHeight] + min(at % kHeight, height - 1));
        },
        [&](int at, R value) {
          to[at / kHeight][at % kHeight] = at % kHeight < height ? value : R(0);
        });
  };
  rows(p.k, stage.k_at, stage.k);
  if (p.q.data) rows(p.q, stage.q_at, stage.q);
}

// The gates of key channels of those; where no token begins they are not read.
template <class R, int kHeight>
__device__ __forceinline__ void fill_gates(ChannelStage<R, kHeight>& stage,
                                           const DeltaProductInputs& p, const Steps& of) {
  const auto& [span, h, first, count] = of;
  const int height = int(p.K);
  const R* const gates = static_cast<const R*>(p.log_gate) + h * p.K;
  copy_each<R>(
      count * kHeight,
      [&](int at) {
        const int64_t token = (uint32_t(first) + at / kHeight) / uint32_t(p.N);
        return gates[(span.b * p.T + span.t0 + token) * p.H * p.K + min(at % kHeight, height - 1)];
      },
      [&](int at, R value) { stage.gates[at / kHeight][at % kHeight] = exp_of(value); });
}

// This lane's part of a row in shared memory.
template <int kLanes, class R, int kRows>
__device__ __forceinline__ void read_row(R (&x)[kRows], const R* row, int lane) {
#pragma unroll
  for (int r = 0; r < kRows; r += 4) {
    R four[4];
    load_four(row + Column<kRows, kLanes>::row(r, lane), four);
#pragma unroll
    for (int u = 0; u < 4; ++u) x[r + u] = four[u];
  }
}

// S^T x, for the whole column.
template <int kLanes, class R, int kRows>
__device__ __forceinline__ R dot(const R (&S)[kRows], const R (&x)[kRows]) {
  R sum[4] = {0, 0, 0, 0};
#pragma unroll
  for (int r = 0; r < kRows; ++r) sum[r % 4] += S[r] * x[r];
  return sum_lanes<kLanes>((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

// S += x y.
template <class R, int kRows>
__device__ __forceinline__ void add(R (&S)[kRows], const R (&x)[kRows], R y) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) S[r] += x[r] * y;
}

// S times the gate of a micro-step that begins a token.
template <int kLanes, class R, int kRows, int kHeight>
__device__ __forceinline__ void decay(R (&S)[kRows], const Stage<R, kHeight>& stage, int i, int) {
  const R a = stage.gate[i];
#pragma unroll
  for (int r = 0; r < kRows; ++r) S[r] *= a;
}
template <int kLanes, class R, int kRows, int kHeight>
__device__ __forceinline__ void decay(R (&S)[kRows], const ChannelStage<R, kHeight>& stage, int i,
                                      int lane) {
  R a[kRows];
  read_row<kLanes>(a, stage.gates[i], lane);
#pragma unroll
  for (int r = 0; r < kRows; ++r) S[r] *= a[r];
}

template <class R, int kRows, int kLanes>
__device__ __forceinline__ void read_column(R (&S)[kRows], const R* from, int64_t K, int64_t V,
                                            int64_t v, int lane) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = Column<kRows, kLanes>::row(r, lane);
    S[r] = from && row < K && v < V ? from[row * V + v] : R(0);
  }
}

template <class R, int kRows, int kLanes>
__device__ __forceinline__ void write_column(const R (&S)[kRows], R* to, int64_t K, int64_t V,
                                             int64_t v, int lane) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = Column<kRows, kLanes>::row(r, lane);
    if (row < K && v < V) to[row * V + v] = S[r];
  }
}

// Calls f.template operator()<Io, R, kRows, kLanes>() for the smallest column that holds K rows.
template <class F> void with_column(Type type, int64_t K, F&& f) {
  const int64_t most = type == Type::kFloat64 ? 512 : 1024;  // two stages of rows in shared memory
  check(K <= most, "[delta_product] the GPU kernels hold up to ", most, " key channels, got ", K);
  if (type == Type::kFloat64) return f.template operator()<double, double, 16, 32>();
  const auto with = [&]<class Io>() {
    if (K <= 32) return f.template operator()<Io, float, 32, 1>();
    if (K <= 64) return f.template operator()<Io, float, 32, 2>();
    if (K <= 128) return f.template operator()<Io, float, 32, 4>();
    if (K <= 256) return f.template operator()<Io, float, 32, 8>();
    return f.template operator()<Io, float, 32, 32>();
  };
  type == Type::kFloat32 ? with.template operator()<float>() : with.template operator()<Bf16>();
}

struct Grid {
  dim3 blocks;
  int threads;
};

// One block per sequence, head and tile of columns.
inline Grid exact_grid(const DeltaProductInputs& p, int lanes) {
  const int64_t most = 256 / lanes, columns = p.V < most ? p.V : most;
  const int threads = int((columns * lanes + 31) / 32 * 32);
  const int64_t per_block = threads / lanes;
  return {dim3(unsigned(p.S * p.H), unsigned((p.V + per_block - 1) / per_block)), threads};
}

}  // namespace lrnn::kernels::cuda
