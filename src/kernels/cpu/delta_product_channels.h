#pragma once
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/functions.h"

// Backward of a chunk whose gates are one per key channel. Between micro-step j and token t a key
// channel decays by Gamma_tj, a vector of them over the channels, so the products of a chunk with
// one gate per head (delta_product_backward.cpp) become sums over pairs of tokens s <= t, with the
// channels in the lanes:
//
//   dq_t   = gamma_t do_t S^T + sum_j X_tj Gamma_tj k_j
//   er_i   = gamma_i Y_i S^T  + sum_j E_ij Gamma_ij k_j
//   src_j  = rho_j D_j G^T    + sum_t X_tj Gamma_tj q_t - sum_i E_ij Gamma_ij beta_i k_i
//
// A gate's gradient is what is written before it, or enters with S, times what is read of that at
// it or after it, or leaves with G: every term has the gate itself for a factor. It is added up in
// this form, not as the difference of what came and went, so that a gradient behind a strong decay
// is small without cancelling; and no gate is ever divided by, so that 0 is as good as any.
namespace lrnn::kernels::LRNN_ISA {
namespace {

// out = a b, of rows in place; out holds whole vectors.
template <class F> inline void multiply_rows(const F* a, const F* b, int64_t n, F* out) {
  over<F>(n, [&](int64_t i, auto part) { store(out + i, load(a + i, part) * load(b + i, part)); });
}

// n tokens of N steps; rows of Kp channels, `row` apart.
template <class F> struct ChannelChunk {
  int64_t n, N, Kp, row;
  bool has_q, has_state;
  F *a, *rho;           // [n]: the gates, and the products of those after each
  F* gamma;             // [1]: the product of all
  const F *q, *k, *bk;  // [n] [n N] [n N] (minus beta k)
  const F* XE;          // X over E: [n + n N, row_XE], or E alone
  int64_t row_XE;
  F *dq, *er, *src;  // in: do S^T and Y S^T where has_state, and D G^T
  F* tail;           // [1]: the rows of G S, summed
  F* dlog_gate;      // [n]
  F* between;        // [n] vectors

  // The products of gates that have been read.
  void multiply_gates() const {
    for (int64_t c = 0; c < Kp; c += kLanes<F>) {
      Vec<F> product = splat<F>(1);
      for (int64_t t = n - 1; t >= 0; --t) {
        store(rho + t * row + c, product);
        product *= load(a + t * row + c);
      }
      store(gamma + c, product);
    }
  }

  void gradients() const {
    for (int64_t c = 0; c < Kp; c += kLanes<F>) {
      leave_with_G(c);
      Vec<F> product = splat<F>(1);
      for (int64_t t = 0; t < n; ++t) {
        product *= load(a + t * row + c);
        N == 1 ? token<true>(t, c, product) : token<false>(t, c, product);
      }
    }
  }

 private:
  // What S and every write leave in G.
  void leave_with_G(int64_t c) const {
    Vec<F> sum = load(gamma + c) * load(tail + c);
    for (int64_t s = 0; s < n; ++s) {
      store(dlog_gate + s * row + c, sum);
      const Vec<F> left = load(rho + s * row + c);
      for (int64_t j = s * N; j < (s + 1) * N; ++j) {
        const Vec<F> gained = left * load(src + j * row + c);
        store(src + j * row + c, gained);
        sum = fma<F>(load(k + j * row + c), gained, sum);
      }
    }
  }

  // What token t reads: of S, which decayed by `product`, then of every write before it.
  template <bool kOne>
  [[gnu::always_inline]] void token(int64_t t, int64_t c, Vec<F> product) const {
    constexpr int W = kLanes<F>;
    const int64_t steps = kOne ? 1 : N, first = t * steps;
    const F *const X = XE + t * row_XE, *const E = XE + ((has_q ? n : 0) + first) * row_XE;
    const Vec<F> decay = load(a + t * row + c);
    Vec<F> query{}, dquery{}, error{}, sum{};
    const auto add = [](F* to, Vec<F> x) { store(to, load(to) + x); };
    if (has_q) {
      query = load(q + t * row + c);
      if (has_state) dquery = product * load(dq + t * row + c);
      sum = query * dquery;
    }
    for (int64_t i = 0; i < steps; ++i) {
      F* const at = er + (first + i) * row + c;
      error = has_state ? product * load(at) : Vec<F>{};
      sum = fma<F>(load(bk + (first + i) * row + c), error, sum);
      if (!kOne) store(at, error);
    }
    add(dlog_gate + c, sum);
    for (int64_t s = 0; s <= t; ++s) {
      const Vec<F> left = s < t ? load(between + s * W) * decay : splat<F>(1);
      store(between + s * W, left);
      Vec<F> read{};
      for (int64_t j = s * steps; j < (s + 1) * steps; ++j) {
        const Vec<F> key = load(k + j * row + c), written = left * key;
        Vec<F> of{};
        if (has_q) {
          const Vec<F> x = splat<F>(X[j]);
          dquery = fma<F>(x, written, dquery);
          of = x * query;
        }
        for (int64_t i = s < t ? 0 : j - first + 1; i < steps; ++i) {
          const Vec<F> e = splat<F>(E[i * row_XE + j]);
          of = fma<F>(e, load(bk + (first + i) * row + c), of);
          if (kOne)
            error = fma<F>(e, written, error);
          else
            store(er + (first + i) * row + c, fma<F>(e, written, load(er + (first + i) * row + c)));
        }
        store(src + j * row + c, fma<F>(left, of, load(src + j * row + c)));
        read = fma<F>(key, of, read);
      }
      if (s == t) break;
      sum = fma<F>(left, read, sum);
      add(dlog_gate + (s + 1) * row + c, sum);
    }
    if (has_q) store(dq + t * row + c, dquery);
    if (kOne) store(er + first * row + c, error);
  }
};

}  // namespace
}  // namespace lrnn::kernels::LRNN_ISA
