#pragma once
#include <algorithm>

#include "kernels/cpu/blocks.h"
#include "kernels/delta_product.h"

// One pass over a column block of the state, in the two directions of time, and how the heads are
// shared out.
namespace lrnn::kernels::LRNN_ISA {
namespace {

// NV vectors of each of the K rows of a state, which are `row` elements apart. What stays the same
// from pass to pass is a struct, made once per block; what changes are arguments, few enough for
// registers: writing them to memory took small heads half as long again.
template <class F> struct StateBlock {
  F* data;
  int64_t row, K;
};

// Enough independent sums to hide the latency of a multiply-add (4 cycles, two per cycle).
template <int NV> constexpr int kSums = NV >= 4 ? 1 : NV == 2 ? 2 : 4;

template <class F, int NV, int U>
[[gnu::always_inline]] inline void gather(Vec<F> (&sums)[U][NV], Vec<F>* out) {
  for (int n = 0; n < NV; ++n) {
    out[n] = sums[0][n];
    for (int u = 1; u < U; ++u) out[n] += sums[u][n];
  }
}

template <class F, int NV> struct ForwardBlock {
  StateBlock<F> S;
  const Vec<F> (*d)[NV];  // what is written, one for each key
  Vec<F> (*p)[NV];        // what is read, one for each row
  Vec<F>* o;
};

// A gate is an F, or one for each row of the state: a const F*.
template <class F> [[gnu::always_inline]] inline F gate_of(F gate, int64_t) { return gate; }
template <class F> [[gnu::always_inline]] inline F gate_of(const F* gate, int64_t i) {
  return gate[i];
}

// S <- gate S + sum_c k_c d_c^T over C keys ; p_r = S^T read_r for R rows ; o = S^T q.
template <class F, class Gate, int NV, int C, int R, bool kGate, bool kQ>
[[gnu::noinline]] void forward_pass(const ForwardBlock<F, NV>& x, Gate gate, const F* const* keys,
                                    const F* const* reads, const F* q) {
  constexpr int W = kLanes<F>, U = kSums<NV * C>;
  F* const S = x.S.data;
  const int64_t row = x.S.row, K = x.S.K;
  Vec<F> d[C][NV], p[R + 1][U][NV];  // the last of p are for o
  const F *k[C], *read[R + 1];
  for (int c = 0; c < C; ++c) {
    k[c] = keys[c];
    for (int n = 0; n < NV; ++n) d[c][n] = x.d[c][n];
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
      if constexpr (kGate) s[n] *= gate_of<F>(gate, i);
    }
    for (int c = 0; c < C; ++c) {
      const Vec<F> write = splat<F>(k[c][i]);
      for (int n = 0; n < NV; ++n) s[n] = fma<F>(write, d[c][n], s[n]);
    }
    for (int r = 0; r < R + int(kQ); ++r) {
      const Vec<F> along = splat<F>(read[r][i]);
      for (int n = 0; n < NV; ++n) p[r][u][n] = fma<F>(along, s[n], p[r][u][n]);
    }
    for (int n = 0; n < NV; ++n) store(at + n * W, s[n]);
  };
  int64_t i = 0;
  for (; i + U <= K; i += U)
    for (int u = 0; u < U; ++u) one(i + u, u);
  for (; i < K; ++i) one(i, 0);
  for (int r = 0; r < R; ++r) gather<F, NV, U>(p[r], x.p[r]);
  if constexpr (kQ) gather<F, NV, U>(p[R], x.o);
}

// p_r = S^T read_r, summed in the order of forward_pass: a sequence cut between two groups gives
// the same bits.
template <class F, int NV, int C, int R>
void read_pass(const StateBlock<F>& S, const F* const* reads, Vec<F> (*p_out)[NV]) {
  constexpr int W = kLanes<F>, U = kSums<NV * C>;
  Vec<F> p[R][U][NV];
  for (int r = 0; r < R; ++r)
    for (int u = 0; u < U; ++u)
      for (int n = 0; n < NV; ++n) p[r][u][n] = Vec<F>{};
  const auto one = [&](int64_t i, int u) __attribute__((always_inline)) {
    for (int r = 0; r < R; ++r)
      for (int n = 0; n < NV; ++n)
        p[r][u][n] = fma<F>(splat<F>(reads[r][i]), load(S.data + i * S.row + n * W), p[r][u][n]);
  };
  int64_t i = 0;
  for (; i + U <= S.K; i += U)
    for (int u = 0; u < U; ++u) one(i + u, u);
  for (; i < S.K; ++i) one(i, 0);
  for (int r = 0; r < R; ++r) gather<F, NV, U>(p[r], p_out[r]);
}

template <class F> struct ReverseBlock {
  StateBlock<F> G;
  const Vec<F>* d;
  Vec<F>* p;
};

// G <- gate (G - k d^T) + q do^T ; p = G^T next. kUpdate: the first term's product; kQ: the second.
template <class F, class Gate, int NV, bool kUpdate, bool kGate, bool kQ, bool kNext>
[[gnu::noinline]] void reverse_pass(const ReverseBlock<F>& x, const F* k, Gate gate, const F* q,
                                    const F* d_o, const F* next) {
  constexpr int W = kLanes<F>, U = kSums<NV>;
  F* const G = x.G.data;
  const int64_t row = x.G.row, K = x.G.K;
  Vec<F> d[NV] = {}, e[NV] = {}, p[U][NV] = {};
  for (int n = 0; n < NV; ++n) {
    if constexpr (kUpdate) d[n] = -x.d[n];
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
      for (int n = 0; n < NV; ++n) s[n] *= gate_of<F>(gate, i);
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
    for (int n = 0; n < NV; ++n) x.p[n] = total[n];
  }
}

// Tokens that forward walks of one head before it turns to the next of a team: even, so that pairs
// of micro-steps are the same ones whatever the stretch.
constexpr int64_t kStretch = 64;

template <class Problem>
void run_delta_product(const Problem& p, const Parallel& parallel,
                       void (*function)(const Problem&, Team)) {
  constexpr int64_t kTeamBytes = 1 << 18;
  const double work = 3.0 * double(p.B * p.T * p.N * p.H) * double(p.K * p.V + 256);
  // As many states as a small second-level cache holds beside what they read.
  const int64_t bytes = p.K * p.V * (p.type == Type::kFloat64 ? 8 : 4);
  const int64_t most = p.T > kStretch ? std::clamp<int64_t>(kTeamBytes / bytes, 1, 8) : 1;
  run_teams({p.S, p.H, p.T, p.cu_seqlens, work, most}, parallel,
            [&](Team team) { function(p, team); });
}

}  // namespace
}  // namespace lrnn::kernels::LRNN_ISA
