#pragma once
#include "kernels/cpu/vec.h"

// One pass over a column block of the state: NV vectors wide, K rows. The two directions of time.
namespace lrnn::kernels::LRNN_ISA {
namespace {

// Enough independent sums to hide the latency of a multiply-add (4 cycles, two per cycle).
template <int NV> constexpr int kSums = NV >= 4 ? 1 : NV == 2 ? 2 : 4;

template <class F, int NV, int U>
[[gnu::always_inline]] inline void gather(Vec<F> (&sums)[U][NV], Vec<F>* out) {
  for (int n = 0; n < NV; ++n) {
    out[n] = sums[0][n];
    for (int u = 1; u < U; ++u) out[n] += sums[u][n];
  }
}

// S <- gate S + sum_c k_c d_c^T over C keys ; p_r = S^T read_r for R rows ; o = S^T q.
template <class F, int NV, int C, int R, bool kGate, bool kQ>
[[gnu::noinline]] void forward_pass(F* S, int64_t row, int64_t K, F gate, const F* const* keys,
                                    const Vec<F> (*d_in)[NV], const F* const* reads,
                                    Vec<F> (*p_out)[NV], const F* q, Vec<F>* o_out) {
  constexpr int W = kLanes<F>, U = kSums<NV * C>;
  Vec<F> d[C][NV], p[R + 1][U][NV];  // the last of p are for o
  const F *k[C], *read[R + 1];
  for (int c = 0; c < C; ++c) {
    k[c] = keys[c];
    for (int n = 0; n < NV; ++n) d[c][n] = d_in[c][n];
  }
  for (int r = 0; r < R; ++r) read[r] = reads[r];
  read[R] = q;
  for (int r = 0; r <= R; ++r)
    for (int u = 0; u < U; ++u)
      for (int n = 0; n < NV; ++n) p[r][u][n] = Vec<F>{};
  // All loads of a row come before its stores, which the compiler cannot tell apart.
  const auto one = [&](int64_t i, int u) __attribute__((always_inline)) {
    F* const at = S + i * row;
    Vec<F> s[NV];
    for (int n = 0; n < NV; ++n) {
      s[n] = load(at + n * W);
      if constexpr (kGate) s[n] *= gate;
    }
    for (int c = 0; c < C; ++c) {
      const Vec<F> write = splat<F>(k[c][i]);
      for (int n = 0; n < NV; ++n) s[n] = fma<F>(write, d[c][n], s[n]);
    }
    for (int r = 0; r < R + int(kQ); ++r) {
      const Vec<F> x = splat<F>(read[r][i]);
      for (int n = 0; n < NV; ++n) p[r][u][n] = fma<F>(x, s[n], p[r][u][n]);
    }
    for (int n = 0; n < NV; ++n) store(at + n * W, s[n]);
  };
  int64_t i = 0;
  for (; i + U <= K; i += U)
    for (int u = 0; u < U; ++u) one(i + u, u);
  for (; i < K; ++i) one(i, 0);
  for (int r = 0; r < R; ++r) gather<F, NV, U>(p[r], p_out[r]);
  if constexpr (kQ) gather<F, NV, U>(p[R], o_out);
}

// p_r = S^T read_r, summed in the order of forward_pass: a sequence cut between two groups gives
// the same bits.
template <class F, int NV, int C, int R>
void read_pass(const F* S, int64_t row, int64_t K, const F* const* reads, Vec<F> (*p_out)[NV]) {
  constexpr int W = kLanes<F>, U = kSums<NV * C>;
  Vec<F> p[R][U][NV];
  for (int r = 0; r < R; ++r)
    for (int u = 0; u < U; ++u)
      for (int n = 0; n < NV; ++n) p[r][u][n] = Vec<F>{};
  const auto one = [&](int64_t i, int u) __attribute__((always_inline)) {
    for (int r = 0; r < R; ++r)
      for (int n = 0; n < NV; ++n)
        p[r][u][n] = fma<F>(splat<F>(reads[r][i]), load(S + i * row + n * W), p[r][u][n]);
  };
  int64_t i = 0;
  for (; i + U <= K; i += U)
    for (int u = 0; u < U; ++u) one(i + u, u);
  for (; i < K; ++i) one(i, 0);
  for (int r = 0; r < R; ++r) gather<F, NV, U>(p[r], p_out[r]);
}

// G <- gate (G - k d^T) + q do^T ; p = G^T next. kUpdate: the first term's product; kQ: the second.
template <class F, int NV, bool kUpdate, bool kGate, bool kQ, bool kNext>
[[gnu::noinline]] void reverse_pass(F* G, int64_t row, int64_t K, const F* k, const Vec<F>* d_in,
                                    F gate, const F* q, const F* d_o, const F* next,
                                    Vec<F>* p_out) {
  constexpr int W = kLanes<F>, U = kSums<NV>;
  Vec<F> d[NV] = {}, e[NV] = {}, p[U][NV] = {};
  for (int n = 0; n < NV; ++n) {
    if constexpr (kUpdate) d[n] = -d_in[n];
    if constexpr (kQ) e[n] = load(d_o + n * W);
  }
  const auto one = [&](int64_t i, int u) __attribute__((always_inline)) {
    F* const at = G + i * row;
    Vec<F> s[NV];
    for (int n = 0; n < NV; ++n) s[n] = load(at + n * W);
    if constexpr (kUpdate) {
      const Vec<F> key = splat<F>(k[i]);
      for (int n = 0; n < NV; ++n) s[n] = fma<F>(key, d[n], s[n]);
    }
    if constexpr (kGate)
      for (int n = 0; n < NV; ++n) s[n] *= gate;
    if constexpr (kQ) {
      const Vec<F> query = splat<F>(q[i]);
      for (int n = 0; n < NV; ++n) s[n] = fma<F>(query, e[n], s[n]);
    }
    if constexpr (kNext) {
      const Vec<F> read = splat<F>(next[i]);
      for (int n = 0; n < NV; ++n) p[u][n] = fma<F>(read, s[n], p[u][n]);
    }
    if constexpr (kUpdate || kGate || kQ)
      for (int n = 0; n < NV; ++n) store(at + n * W, s[n]);
  };
  int64_t i = 0;
  for (; i + U <= K; i += U)
    for (int u = 0; u < U; ++u) one(i + u, u);
  for (; i < K; ++i) one(i, 0);
  if constexpr (kNext) {
    Vec<F> total[NV];
    gather<F, NV, U>(p, total);
    for (int n = 0; n < NV; ++n) p_out[n] = total[n];
  }
}

}  // namespace
}  // namespace lrnn::kernels::LRNN_ISA
