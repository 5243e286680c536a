#pragma once
#include <cmath>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/matrix.h"
#include "kernels/ttt.h"

// One piece of a mini-batch of one head: its rows, and what forward and backward both compute.
// Rows and matrices are padded to whole vectors with zeros, which every function here keeps.
namespace lrnn::kernels::LRNN_ISA {
namespace {

// out[i] = f(i) over the first n elements, by vectors; what is beyond stays as it was.
template <class F, class Body> inline void fill_row(F* out, int64_t n, Body body) {
  over<F>(n, [&](int64_t i, auto part) { store(out + i, body(i), part); });
}

// z <- (z - mean) / sqrt(variance + eps); the result is one over that root.
template <class F> F normalise(F* z, int64_t n, int64_t padded, double eps) {
  Vec<F> total{};
  for (int64_t i = 0; i < padded; i += kLanes<F>) total += load(z + i);
  const F mean = sum<F>(total) / F(n);
  fill_row(z, n, [&](int64_t i) { return load(z + i) - mean; });
  const F one_over = 1 / std::sqrt(dot(z, z, padded) / F(n) + F(eps));
  scale_row(one_over, z, padded, z);
  return one_over;
}

// Through the norm, from d by the normed x: out = (d - mean(d) - x mean(d x)) / root.
template <class F>
void through_norm(const F* d, const F* x, F one_over, int64_t n, int64_t padded, F* out) {
  Vec<F> total{}, along{};
  for (int64_t i = 0; i < padded; i += kLanes<F>)
    total += load(d + i), along = fma<F>(load(d + i), load(x + i), along);
  const F mean = sum<F>(total) / F(n), share = sum<F>(along) / F(n);
  fill_row(out, n,
           [&](int64_t i) { return one_over * (load(d + i) - mean - share * load(x + i)); });
}

// A mini-batch's weights, or their gradient: a matrix [Dp][Dp] and a row.
template <class F> struct TttWeights { F *W, *b; };

template <class F, class IO> struct TttPiece {
  const TttInputs& p;
  const Unit& u;
  int64_t D, Dp, most;                      // channels, padded; tokens of the longest piece
  F *weight, *bias;                         // [Dp]
  F *k, *q, *x, *error, *g, *G, *P, *step;  // [most][Dp]: see compute(); step = -eta G
  F* C;                                     // [most][most]: k_s q_t + 1 for s <= t
  F *eta, *one_over, *P_one_over;           // [most]

  TttPiece(const TttInputs& p_, const Unit& u_, Bump& bump) : p(p_), u(u_), D(p_.D) {
    constexpr int64_t W = kLanes<F>;
    Dp = (D + W - 1) / W * W;
    most = u.length < p.mini_batch ? u.length : p.mini_batch;
    weight = bump.take<F>(Dp), bias = bump.take<F>(Dp);
    for (F** rows : {&k, &q, &x, &error, &g, &G, &P, &step}) *rows = bump.take<F>(most * Dp);
    C = bump.take<F>(most * most);
    for (F** numbers : {&eta, &one_over, &P_one_over}) *numbers = bump.take<F>(most);
  }

  void begin() const {
    read_row(static_cast<const F*>(p.weight) + u.head * D, D, weight);
    read_row(static_cast<const F*>(p.bias) + u.head * D, D, bias);
  }

  // Where in its mini-batch the sequence begins.
  int64_t position() const {
    if (!p.position) return 0;
    const auto at = int64_t(static_cast<const F*>(p.position)[u.sequence] + F(0.5));
    return at < 0 ? 0 : at < p.mini_batch ? at : p.mini_batch - 1;
  }
  int64_t first_slot() const {
    const int64_t m = p.mini_batch;
    return p.cu_seqlens ? u.begin / m + 2 * u.sequence : u.sequence * (p.T / m + 2);
  }
  // Calls body(piece, first token, tokens) for the pieces of the sequence; the result is how many.
  template <class Body> int64_t pieces(Body body) const {
    int64_t piece = 0, position = this->position();
    for (int64_t t = 0; t < u.length; ++piece) {
      const int64_t left = p.mini_batch - position, n = u.length - t < left ? u.length - t : left;
      body(piece, t, n);
      t += n, position = 0;
    }
    return piece;
  }

  // Matrix and row `which` (0: now, 1: when the mini-batch began) of a state, or zeros.
  void load_state(const void* W, const void* b, int64_t which, const TttWeights<F>& to) const {
    const int64_t at = (2 * u.sequence + which) * p.H + u.head;
    std::memset(to.W, 0, size_t(Dp * Dp) * sizeof(F));
    std::memset(to.b, 0, size_t(Dp) * sizeof(F));
    if (W) copy_matrix(static_cast<const F*>(W) + at * D * D, D, D, D, to.W, Dp);
    if (b) copy_matrix(static_cast<const F*>(b) + at * D, D, 1, D, to.b, Dp);
  }
  void store_state(const TttWeights<F>& from, int64_t which, void* W, void* b) const {
    const int64_t at = (2 * u.sequence + which) * p.H + u.head;
    if (W) copy_matrix(from.W, Dp, D, D, static_cast<F*>(W) + at * D * D, D);
    if (b) copy_matrix(from.b, Dp, 1, D, static_cast<F*>(b) + at * D, D);
  }
  void copy(const TttWeights<F>& from, const TttWeights<F>& to) const {
    std::memcpy(to.W, from.W, size_t(Dp * Dp) * sizeof(F));
    std::memcpy(to.b, from.b, size_t(Dp) * sizeof(F));
  }

  // out [n][Dp] = rows W + b
  void through(const F* rows, int64_t n, const TttWeights<F>& weights, F* out) const {
    for (int64_t t = 0; t < n; ++t) std::memcpy(out + t * Dp, weights.b, size_t(Dp) * sizeof(F));
    product<F>({n, Dp, D}, {rows, Dp, 1}, {weights.W, Dp}, {out, Dp}, true);
  }
  // W += rows^T values, b += the sum of the values
  void add_outer(const F* rows, const F* values, int64_t n, const TttWeights<F>& to) const {
    product<F>({D, Dp, n}, {rows, 1, Dp}, {values, Dp}, {to.W, Dp}, true);
    for (int64_t t = 0; t < n; ++t)
      for (int64_t i = 0; i < Dp; i += kLanes<F>)
        store(to.b + i, load(to.b + i) + load(values + t * Dp + i));
  }

  // Of the tokens t0 .. t0 + n with the weights `now` before them and `first` for their gradients:
  // x = the normed K A, error = f(k) - v, g = the gradient by x, G, step, C, and with queries the
  // normed P.
  void compute(int64_t t0, int64_t n, const TttWeights<F>& now, const TttWeights<F>& first) const {
    for (int64_t t = 0; t < n; ++t) {
      eta[t] = static_cast<const F*>(p.eta)[(u.batch * p.T + u.begin + t0 + t) * p.H + u.head];
      read_row(row_of<const IO>(p.k, u, t0 + t, 0), D, k + t * Dp);
      read_row(row_of<const IO>(p.v, u, t0 + t, 0), D, error + t * Dp);
      if (p.q.data) read_row(row_of<const IO>(p.q, u, t0 + t, 0), D, q + t * Dp);
    }
    through(k, n, first, x);
    for (int64_t t = 0; t < n; ++t) {
      F *const x_t = x + t * Dp, *const e_t = error + t * Dp, *const k_t = k + t * Dp;
      one_over[t] = normalise(x_t, D, Dp, p.eps);
      for (int64_t i = 0; i < Dp; i += kLanes<F>) {
        const Vec<F> w = load(weight + i);
        store(e_t + i, load(k_t + i) + w * load(x_t + i) + load(bias + i) - load(e_t + i));
        store(g + t * Dp + i, w * load(e_t + i));
      }
      through_norm(g + t * Dp, x_t, one_over[t], D, Dp, G + t * Dp);
      scale_row(-eta[t], G + t * Dp, Dp, step + t * Dp);
    }
    if (!p.q.data) return;
    through(q, n, now, P);
    for (int64_t t = 0; t < n; ++t)
      for (int64_t s = 0; s <= t; ++s) C[t * most + s] = dot(q + t * Dp, k + s * Dp, Dp) + 1;
    product<F, Lower>({n, Dp, n}, {C, most, 1}, {step, Dp}, {P, Dp}, true);
    for (int64_t t = 0; t < n; ++t) P_one_over[t] = normalise(P + t * Dp, D, Dp, p.eps);
  }
};

}  // namespace
}  // namespace lrnn::kernels::LRNN_ISA
