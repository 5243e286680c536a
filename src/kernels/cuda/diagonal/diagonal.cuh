#pragma once
#include <algorithm>
#include <type_traits>

#include "kernels/cuda/diagonal/diagonal.h"
#include "kernels/cuda/tile/functions.cuh"
#include "kernels/cuda/tile/sequences.cuh"

// How the kernels hold a state [K,V], those of Titans' memory, too. A thread keeps a tile of kRows
// x kColumns in registers; `lanes` neighbouring threads of a warp share its columns, so that sums
// over keys are shuffles. A block has one head of one sequence and some of the columns.
namespace lrnn::kernels::cuda {

constexpr int kDiagonalMostThreads = 256, kDiagonalStage = 8;  // tokens in shared memory at once

// Long keys leave room in shared memory for the sums of a few warps only.
template <class R, int kRows> constexpr int diagonal_threads() {
  if (kRows <= 4) return kDiagonalMostThreads;
  return sizeof(R) == 4 ? 128 : 32;
}

struct DiagonalPlan {
  int lanes, columns, threads, groups;  // columns per block; groups of them
};

// Values of type R in shared memory: keys (DiagonalKeys), values, and, backwards, the sums of every
// warp.
inline size_t diagonal_stage(const DiagonalPlan& plan, int rows, int value_rows) {
  const size_t size = size_t(plan.lanes) * size_t(rows);
  return size_t(kDiagonalStage) * (5 * size + size_t(value_rows) * size_t(plan.columns));
}
inline size_t diagonal_backward_stage(const DiagonalPlan& plan, int rows, int kinds) {
  const size_t sums = size_t(plan.threads / 32) * size_t(kinds * plan.lanes * rows);
  return diagonal_stage(plan, rows, 2) + 2 * sums;
}

template <class R, int kRows, int kColumns> DiagonalPlan diagonal_plan(int64_t K, int64_t V) {
  DiagonalPlan plan{1, 0, 0, 0};
  while (plan.lanes * kRows < K) plan.lanes *= 2;
  const int64_t tiles = (V + kColumns - 1) / kColumns, in_warp = 32 / plan.lanes,
                most = diagonal_threads<R, kRows>() / plan.lanes;
  int64_t here = std::min((tiles + in_warp - 1) / in_warp * in_warp, most);
  const auto take = [&] {
    plan.columns = int(here) * kColumns, plan.threads = int(here) * plan.lanes;
  };
  take();
  // Fewer warps where the chip has no room for the sums of so many.
  while (here > in_warp &&
         sizeof(R) * diagonal_backward_stage(plan, kRows, 5) > size_t(chip().shared))
    here -= in_warp, take();
  plan.groups = int((V + plan.columns - 1) / plan.columns);
  return plan;
}

// Calls f<type of sums, rows, columns of a tile> for the type and the number of keys; with few keys
// a tile has kColumns.
template <int kColumns, class F> void with_tile(Type type, int64_t K, F&& f) {
  const auto typed = [&]<class R>() {
    K <= 128 ? f.template operator()<R, 4, kColumns>() : f.template operator()<R, 16, 1>();
  };
  type == Type::kFloat64 ? typed.template operator()<double>() : typed.template operator()<float>();
}
template <int kColumns> int64_t groups_of_columns(const HeadsInputs& p) {
  int64_t groups = 0;
  with_tile<kColumns>(p.type, p.K, [&]<class R, int kRows, int kTile>() {
    groups = diagonal_plan<R, kRows, kTile>(p.K, p.V).groups;
  });
  return groups;
}
constexpr int kDiagonalColumns = 4;

template <int kRows, int kColumns> struct DiagonalPlace {
  int64_t s, h, v0;   // v0: the block's first column
  int group, k0, c0;  // the thread's first key, and its first column in the block
  template <class Inputs>
  __device__ __forceinline__ DiagonalPlace(const Inputs& p, const DiagonalPlan& plan) {
    const int64_t head = blockIdx.x / plan.groups;
    group = int(blockIdx.x - head * plan.groups);
    s = head / p.H, h = head - s * p.H;
    v0 = int64_t(group) * plan.columns;
    k0 = threadIdx.x % plan.lanes * kRows, c0 = threadIdx.x / plan.lanes * kColumns;
  }
};

template <int kLength, class R>
__device__ __forceinline__ void load_run(const R* from, R (&x)[kLength]) {
#pragma unroll
  for (int i = 0; i < kLength; ++i) x[i] = from[i];
}
template <> __device__ __forceinline__ void load_run<4, float>(const float* from, float (&x)[4]) {
  load_four(from, x);
}

// Sums over the lanes that share columns.
template <class R> __device__ __forceinline__ R sum_keys(R x, int lanes) {
  for (int d = 1; d < lanes; d *= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
  return x;
}

// Tokens first .. first+count-1 of a sequence and a head: what is in shared memory at a time.
struct DiagonalTokens {
  Span span;
  int64_t h, first;
  int count;

  // A stage of a sequence.
  __device__ __forceinline__ DiagonalTokens(const Span& span_, int64_t h_, int64_t first_)
      : span(span_),
        h(h_),
        first(first_),
        count(int(min(int64_t(kDiagonalStage), span.length - first))) {}

  // Their rows, [tokens][size], from column `begin` on; zeros for what is not there.
  template <class R>
  __device__ __forceinline__ void stage(R* to, Type type, const Rows& x, int64_t begin,
                                        int64_t valid, int size) const {
    for (int i = threadIdx.x; i < kDiagonalStage * size; i += blockDim.x) {
      const int t = i / size, at = i % size;
      to[i] =
          x.data && t < count && begin + at < valid
              ? load_as<R>(type, x.data, row_at(x, span.b, span.t0 + first + t, 0, h) + begin + at)
              : R(0);
    }
  }
};

// Decays, in place of their logarithms: exp, or 2 exp - 1.
template <class R> __device__ __forceinline__ R decay_of(R log_decay, bool negative) {
  const R e = exp_of(log_decay);
  return negative ? 2 * e - 1 : e;
}

// The K-vectors of a stage, one after the other.
template <class R> struct DiagonalKeys {
  R *q, *k, *decay, *kk, *w;  // w = rate kk

  __device__ __forceinline__ DiagonalKeys(R* memory, int size) {
    const int one = kDiagonalStage * size;
    q = memory, k = q + one, decay = k + one, kk = decay + one, w = kk + one;
  }
  static constexpr int kCount = 5;

  // `size` is K padded; padded keys hold zeros for ever.
  __device__ __forceinline__ void fill(const DiagonalInputs& p, const DiagonalTokens& of,
                                       int size) const {
    const auto& [span, h, first, count] = of;
    const Type wide = sizeof(R) == 8 ? Type::kFloat64 : Type::kFloat32;
    of.stage(q, p.type, p.q, 0, p.K, size);
    of.stage(k, p.type, p.k, 0, p.K, size);
    for (int i = threadIdx.x; i < kDiagonalStage * size; i += blockDim.x) {
      const int t = i / size, at = i % size;
      const bool there = t < count && at < p.K;
      const int64_t token = span.t0 + first + t;
      decay[i] = there ? decay_of(load_as<R>(wide, p.log_decay.data,
                                             row_at(p.log_decay, span.b, token, 0, h) + at),
                                  p.negative)
                       : R(1);
      if (!p.kk.data) continue;
      const R x =
          there ? load_as<R>(p.type, p.kk.data, row_at(p.kk, span.b, token, 0, h) + at) : R(0);
      kk[i] = x;
      w[i] = there ? x * load_as<R>(p.type, p.rate.data, row_at(p.rate, span.b, token, 0, h) + at)
                   : R(0);
    }
  }
};

// S <- diag(a) S - w p^T + k v^T with p = S^T kk.
template <class R, int kRows, int kColumns>
__device__ __forceinline__ void diagonal_step(R (&S)[kRows][kColumns], const DiagonalKeys<R>& keys,
                                              int at, const R* v, bool rank_one, int lanes) {
  R k[kRows], a[kRows], value[kColumns];
  load_run(keys.k + at, k), load_run(keys.decay + at, a), load_run(v, value);
  if (rank_one) {
    R kk[kRows], w[kRows];
    load_run(keys.kk + at, kk), load_run(keys.w + at, w);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      R p = 0;
#pragma unroll
      for (int i = 0; i < kRows; ++i) p += S[i][j] * kk[i];
      p = sum_keys(p, lanes);
#pragma unroll
      for (int i = 0; i < kRows; ++i) S[i][j] = a[i] * S[i][j] - w[i] * p + k[i] * value[j];
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j) S[i][j] = a[i] * S[i][j] + k[i] * value[j];
}

// Calls f(i, j, offset in a head's [K,V]) for the elements of this thread's tile that exist.
template <int kRows, int kColumns, class Inputs, class F>
__device__ __forceinline__ void each_element(const Inputs& p,
                                             const DiagonalPlace<kRows, kColumns>& at, F&& f) {
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const int64_t k = at.k0 + i, v = at.v0 + at.c0 + j;
      if (k < p.K && v < p.V) f(i, j, k * p.V + v);
    }
}

// A tile of a state [S,H,K,V], which is left as it is where there is none.
template <class R, int kRows, int kColumns, class Inputs>
__device__ __forceinline__ void load_state(R (&S)[kRows][kColumns], const void* from,
                                           const Inputs& p,
                                           const DiagonalPlace<kRows, kColumns>& at) {
  if (!from) return;
  const R* const head = static_cast<const R*>(from) + (at.s * p.H + at.h) * (p.K * p.V);
  each_element(p, at, [&](int i, int j, int64_t e) { S[i][j] = head[e]; });
}
template <class R, int kRows, int kColumns, class Inputs>
__device__ __forceinline__ void store_state(const R (&S)[kRows][kColumns], void* to,
                                            const Inputs& p,
                                            const DiagonalPlace<kRows, kColumns>& at) {
  if (!to) return;
  R* const head = static_cast<R*>(to) + (at.s * p.H + at.h) * (p.K * p.V);
  each_element(p, at, [&](int i, int j, int64_t e) { head[e] = S[i][j]; });
}

// o = scale S^T q of a token; `row`: where this thread's columns of it begin.
template <class R, int kRows, int kColumns, class Forward>
__device__ __forceinline__ void store_output(const R (&S)[kRows][kColumns], const R (&q)[kRows],
                                             const Forward& p,
                                             const DiagonalPlace<kRows, kColumns>& at, int lanes,
                                             int64_t row) {
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    R o = 0;
#pragma unroll
    for (int i = 0; i < kRows; ++i) o += q[i] * S[i][j];
    o = R(p.scale) * sum_keys(o, lanes);
    if (at.k0 == 0 && at.v0 + at.c0 + j < p.V) store_as<R>(p.type, p.o.data, row + j, o);
  }
}

// How the kernels of an op are launched.
struct DiagonalLaunch {
  const char* op;
  cudaStream_t stream;

  // Calls f<type of sums, rows, columns of a tile>(plan), where there is anything to do.
  template <int kColumns, class F> void each_tile(const HeadsInputs& p, F&& f) const {
    if (p.S == 0 || p.H == 0) return;
    with_tile<kColumns>(p.type, p.K, [&]<class R, int kRows, int kTile>() {
      f.template operator()<R, kRows, kTile>(diagonal_plan<R, kRows, kTile>(p.K, p.V));
    });
    check_launch(op);
  }
  // A block for every head and group of columns.
  template <class Kernel, class Inputs, class... More>
  void run(Kernel* kernel, size_t bytes, const DiagonalPlan& plan, const Inputs& p,
           More... more) const {
    const int64_t blocks = p.S * p.H * plan.groups;
    check(blocks < (int64_t(1) << 31), "[", op, "] too many sequences and heads for a grid");
    allow_shared(kernel, bytes);
    kernel<<<unsigned(blocks), unsigned(plan.threads), bytes, stream>>>(p, plan, more...);
  }
  // A thread for every one of `count` sums.
  template <class Kernel, class Inputs, class... More>
  void finish(Kernel* kernel, int64_t count, const Inputs& p, More... more) const {
    const int64_t blocks = (count + 255) / 256;
    check(blocks < (int64_t(1) << 31), "[", op, "] too many keys for a grid");
    if (blocks > 0) kernel<<<unsigned(blocks), 256, 0, stream>>>(p, more...);
  }
};

}  // namespace lrnn::kernels::cuda
