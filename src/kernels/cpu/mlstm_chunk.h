#pragma once
#include <cmath>
#include <limits>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/matrix.h"
#include "kernels/mlstm.h"

// A chunk of L tokens as both directions of time see it. With the stabilised gates f', i':
//
//   W_tj = i'_j f'_{j+1} .. f'_t  for j <= t       A = (Q K^T) o W
//   e_t  = f'_1 .. f'_t           r_j = i'_j f'_{j+1} .. f'_L           g = e_L
//   num  = A V + e Q C            s   = A 1 + e Q n      h = num / (max(|s|, exp(-m)) + eps)
//   C   <- g C + (r K)^T V        n  <- g n + (r K)^T 1
//
// k carries the scale from the beginning.
namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class F> inline F scalar_log_sigmoid(F x) {
  return std::min(x, F(0)) - std::log1p(std::exp(-std::abs(x)));
}

template <class F, class IO> struct MlstmChunk {
  const MlstmInputs& p;
  const Unit& u;
  int64_t Kp, Vp, Cp;     // K, V and the tokens of a chunk, rounded up to cache lines
  int64_t ldk, ldv, ldc;  // row strides
  F *q, *k, *v, *C, *n;   // [Cp,ldk] [Cp,ldk] [Cp,ldv] [Kp,ldv] [ldk]
  F *KT, *W, *A;          // [Kp,ldc] [Cp,ldc] [Cp,ldc]
  F *f, *i, *e, *r, *m;   // [Cp]; f and i are f' and i'
  F *by_input, *s;        // [Cp]: 1 where m is i and else 0; A 1 + e Q n

  MlstmChunk(const MlstmInputs& p_, const Unit& u_, Bump& bump) : p(p_), u(u_) {
    constexpr int64_t line = 64 / int64_t(sizeof(F));
    const auto up = [](int64_t x) { return (x + line - 1) / line * line; };
    const int64_t tokens = std::min(u.length, kMlstmChunk);
    Kp = up(p.K), Vp = up(p.V), Cp = up(tokens);
    ldk = padded<F>(p.K), ldv = padded<F>(p.V), ldc = padded<F>(tokens);
    q = bump.take<F>(Cp * ldk), k = bump.take<F>(Cp * ldk), v = bump.take<F>(Cp * ldv);
    C = bump.take<F>(Kp * ldv), n = bump.take<F>(ldk), KT = bump.take<F>(Kp * ldc);
    W = bump.take<F>(Cp * ldc), A = bump.take<F>(Cp * ldc);
    for (F** x : {&f, &i, &e, &r, &m, &by_input, &s}) *x = bump.take<F>(Cp);
  }

  // Whether rows have padding, which must be zero before anything is read. Tokens beyond the last
  // of a chunk need not be: what comes of them is overwritten, never multiplied.
  bool padding() const { return Kp != p.K || Vp != p.V; }
  int64_t token_index(int64_t t) const { return (u.batch * p.T + u.begin + t) * p.H + u.head; }
  int64_t state_index() const { return u.sequence * p.H + u.head; }
  // Of an array [B,H,T / chunk,K*V+K+1], for t = chunk, 2 chunk, ..
  int64_t slot_index(int64_t t) const {
    const int64_t slots = p.T / kMlstmChunk;
    const int64_t slot = u.begin / kMlstmChunk + t / kMlstmChunk - 1;
    return ((u.batch * p.H + u.head) * slots + slot) * (p.K * p.V + p.K + 1);
  }

  // The state a sequence starts from; returns m.
  F first_state() const {
    std::memset(C, 0, size_t(Kp * ldv) * sizeof(F)), std::memset(n, 0, size_t(ldk) * sizeof(F));
    if (!p.C) return -std::numeric_limits<F>::infinity();
    const int64_t at = state_index();
    copy_matrix(static_cast<const F*>(p.C) + at * p.K * p.V, p.V, p.K, p.V, C, ldv);
    std::memcpy(n, static_cast<const F*>(p.n) + at * p.K, size_t(p.K) * sizeof(F));
    return static_cast<const F*>(p.m)[at];
  }

  void load(int64_t t0, int64_t L, F m_before) const {
    for (int64_t t = 0; t < L; ++t) {
      read_row(row_of<const IO>(p.q, u, t0 + t, 0), p.K, q + t * ldk);
      read_row(row_of<const IO>(p.k, u, t0 + t, 0), p.K, k + t * ldk);
      scale_row(F(p.scale), k + t * ldk, Kp, k + t * ldk);
      read_row(row_of<const IO>(p.v, u, t0 + t, 0), p.V, v + t * ldv);
      const F raw = static_cast<const F*>(p.i)[token_index(t0 + t)];
      const F a = scalar_log_sigmoid(static_cast<const F*>(p.f)[token_index(t0 + t)]) + m_before;
      by_input[t] = raw >= a, m[t] = m_before = raw >= a ? raw : a;
      f[t] = std::exp(a - m[t]), i[t] = std::exp(raw - m[t]);
    }
    F after = 1, before = 1;
    for (int64_t t = L - 1; t >= 0; --t) r[t] = i[t] * after, after *= f[t];
    for (int64_t t = 0; t < L; ++t) e[t] = before *= f[t];
  }

  // W, A and s, from what was loaded and the state before the chunk.
  void attend(int64_t L) const {
    constexpr int lanes = kLanes<F>;
    std::memset(W, 0, size_t(Cp) * sizeof(F));
    for (int64_t t = 0; t < L; ++t) {
      F* const row = W + t * ldc;
      if (t > 0)
        for (int64_t c = 0; c < Cp; c += lanes)
          store(row + c, f[t] * LRNN_ISA::load(row - ldc + c));
      row[t] = i[t];
    }
    transpose(k, ldk, Cp, Kp, KT, ldc);
    product<F>({L, Cp, p.K}, {q, ldk, 1}, {KT, ldc}, {A, ldc}, false);
    for (int64_t t = 0; t < L; ++t) {
      F* const row = A + t * ldc;
      F total = 0;
      for (int64_t j = 0; j <= t; ++j) total += row[j] *= W[t * ldc + j];
      for (int64_t j = t + 1; j < ldc; ++j) row[j] = 0;
      s[t] = total + e[t] * dot(q + t * ldk, n, Kp);
    }
  }

  F denominator(int64_t t) const { return std::max(std::abs(s[t]), std::exp(-m[t])) + F(p.eps); }

  // out = factor_t row_t for the rows of a chunk.
  static void scale_rows(const F* factor, const F* in, int64_t L, int64_t columns, int64_t row,
                         F* out) {
    for (int64_t t = 0; t < L; ++t) scale_row(factor[t], in + t * row, columns, out + t * row);
  }
};

}  // namespace
}  // namespace lrnn::kernels::LRNN_ISA
