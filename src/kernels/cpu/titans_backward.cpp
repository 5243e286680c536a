#include "kernels/cpu/columns.h"
#include "kernels/titans.h"

// Backward of one head of one sequence, chunk by chunk from the last, W columns of the states at a
// time. With GM and GS the gradients of memory and momentum after a token, per token:
//
//   GM += q do^T                      dq = M_after do            (do holds the scale)
//   GS += GM,   w = GS^T k            dv = theta w,   de = -theta w,   dtheta = -e w
//   dk = M_before de - theta GS e     dalpha = -<GM, M_before>,   deta = <GS, S_before>
//   GM <- (1 - alpha) GM + k de^T     GS <- eta GS
namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class F, class IO> struct TitansBackwardUnit : ColumnsUnit<F, IO, TitansBackward> {
  using Base = ColumnsUnit<F, IO, TitansBackward>;
  using Base::W, Base::p, Base::u, Base::Kp, Base::Vp, Base::values, Base::load_columns;
  F *GM, *GS;                // [Vp][Kp]
  F *q, *k, *dq, *dk;        // [chunk][Kp]
  F *dtheta, *deta, *dkeep;  // [chunk][W], to be summed over the lanes
  F* states;                 // of W columns, memory and momentum: [chunk + 1][2][W][Kp]
  F* errors;                 // e: [chunk][W]

  TitansBackwardUnit(const TitansBackward& p_, const Unit& u_, Bump& bump) : Base(p_, u_) {
    const int64_t chunk = u.length < kTitansChunk ? u.length : kTitansChunk;
    GM = bump.take<F>(Vp * Kp), GS = bump.take<F>(Vp * Kp);
    for (F** x : {&q, &k, &dq, &dk}) *x = bump.take<F>(chunk * Kp);
    bump.clear();  // their padding stays zero
    for (F** x : {&dtheta, &deta, &dkeep, &errors}) *x = bump.take<F>(chunk * W);
    states = bump.take<F>((chunk + 1) * 2 * W * Kp);
  }

  F* memory(int64_t t) const { return states + 2 * t * W * Kp; }
  F* momentum(int64_t t) const { return states + (2 * t + 1) * W * Kp; }
  int64_t gate_at(int64_t t) const { return (u.batch * p.T + u.begin + t) * p.H + u.head; }
  F gate(const void* of, int64_t t) const { return static_cast<const F*>(of)[gate_at(t)]; }

  void load_rows(int64_t t0, int64_t n) const {
    for (int64_t t = 0; t < n; ++t) {
      if (p.q.data) read_row(row_of<const IO>(p.q, u, t0 + t, 0), p.K, q + t * Kp);
      read_row(row_of<const IO>(p.k, u, t0 + t, 0), p.K, k + t * Kp);
    }
    for (F* x : {dq, dk}) std::memset(x, 0, size_t(n * Kp) * sizeof(F));
    for (F* x : {dtheta, deta, dkeep}) std::memset(x, 0, size_t(n * W) * sizeof(F));
  }

  void load_states(int64_t t, int64_t c) const {
    const F *m = this->own(static_cast<const F*>(p.state)),
            *s = this->own(static_cast<const F*>(p.momentum));
    if (t > 0) m = this->kept(t, kTitansChunk, 2), s = m + p.K * p.V;
    load_columns(m, c, memory(0)), load_columns(s, c, momentum(0));
  }

  // The states of a chunk's W columns, from the first.
  void repeat(int64_t t0, int64_t n, int64_t c) const {
    alignas(64) F tile[W * W];
    for (int64_t t = 0; t < n; ++t) {
      const F *const m = memory(t), *const s = momentum(t), *const k_t = k + t * Kp;
      F *const m_after = memory(t + 1), *const s_after = momentum(t + 1);
      for (int j = 0; j < W; ++j) {
        Vec<F> sum{};
        for (int64_t i = 0; i < Kp; i += W) sum = fma<F>(load(k_t + i), load(m + j * Kp + i), sum);
        store(tile + j * W, sum);
      }
      const Vec<F> error = lane_sums(tile) - values(p.v, t0 + t, c);
      store(errors + t * W, error);
      const F theta = gate(p.theta, t0 + t);
      const Vec<F> eta = splat<F>(gate(p.eta, t0 + t)), keep = splat<F>(1 - gate(p.alpha, t0 + t));
      for (int j = 0; j < W; ++j)
        for (int64_t i = 0; i < Kp; i += W) {
          const Vec<F> x =
              fma<F>(splat<F>(-theta * error[j]), load(k_t + i), eta * load(s + j * Kp + i));
          store(s_after + j * Kp + i, x);
          store(m_after + j * Kp + i, fma<F>(keep, load(m + j * Kp + i), x));
        }
    }
  }

  // Adds what token t reads to both gradients, and returns w.
  template <bool kQ> Vec<F> sums_over_keys(F* gm, F* gs, int64_t t, Vec<F> d_o) const {
    alignas(64) F tile[W * W];
    const F *const q_t = q + t * Kp, *const k_t = k + t * Kp;
    for (int j = 0; j < W; ++j) {
      Vec<F> sum{};
      for (int64_t i = 0; i < Kp; i += W) {
        Vec<F> x = load(gm + j * Kp + i);
        if constexpr (kQ) {
          x = fma<F>(splat<F>(d_o[j]), load(q_t + i), x);
          store(gm + j * Kp + i, x);
        }
        const Vec<F> y = load(gs + j * Kp + i) + x;
        store(gs + j * Kp + i, y);
        sum = fma<F>(y, load(k_t + i), sum);
      }
      store(tile + j * W, sum);
    }
    return lane_sums(tile);
  }

  // Everything that is summed over values, and the gradients one token further back.
  template <bool kQ>
  void sums_over_values(F* gm, F* gs, int64_t t, Vec<F> d_o, Vec<F> w, int64_t token) const {
    const F *const before = memory(t), *const s_before = momentum(t), *const after = memory(t + 1);
    const F theta = gate(p.theta, token);
    const Vec<F> eta = splat<F>(gate(p.eta, token)), keep = splat<F>(1 - gate(p.alpha, token));
    const Vec<F> step = -theta * load(errors + t * W), de = -theta * w;
    Vec<F> eta_sum{}, keep_sum{};
    for (int64_t i = 0; i < Kp; i += W) {
      const int64_t at = t * Kp + i;
      Vec<F> dq_i = load(dq + at), dk_i = load(dk + at);
      const Vec<F> k_i = load(k + at);
      for (int j = 0; j < W; ++j) {
        const int64_t e = j * Kp + i;
        const Vec<F> x = load(gm + e), y = load(gs + e), m = load(before + e);
        if constexpr (kQ) dq_i = fma<F>(splat<F>(d_o[j]), load(after + e), dq_i);
        dk_i = fma<F>(splat<F>(step[j]), y, fma<F>(splat<F>(de[j]), m, dk_i));
        keep_sum = fma<F>(x, m, keep_sum), eta_sum = fma<F>(y, load(s_before + e), eta_sum);
        store(gm + e, fma<F>(splat<F>(de[j]), k_i, keep * x));
        store(gs + e, eta * y);
      }
      if constexpr (kQ) store(dq + at, dq_i);
      store(dk + at, dk_i);
    }
    const auto add = [&](F* to, Vec<F> x) { store(to + t * W, load(to + t * W) + x); };
    add(dtheta, -load(errors + t * W) * w), add(deta, eta_sum), add(dkeep, keep_sum);
  }

  template <bool kQ> void columns(int64_t t0, int64_t n, int64_t c) const {
    load_states(t0, c);
    repeat(t0, n, c);
    F *const gm = GM + c * Kp, *const gs = GS + c * Kp;
    const int64_t wanted = p.V - c < W ? p.V - c : W;
    for (int64_t t = n - 1; t >= 0; --t) {
      const Vec<F> d_o = kQ ? F(p.scale) * values(p.d_o, t0 + t, c) : Vec<F>{};
      const Vec<F> w = sums_over_keys<kQ>(gm, gs, t, d_o);
      const Vec<F> dv[1] = {gate(p.theta, t0 + t) * w};
      store_block<F, 1>(dv, wanted, row_of<IO>(p.dv, u, t0 + t, 0) + c);
      sums_over_values<kQ>(gm, gs, t, d_o, w, t0 + t);
    }
  }

  void chunk(int64_t t0, int64_t n) const {
    load_rows(t0, n);
    for (int64_t c = 0; c < p.V; c += W)
      p.q.data ? columns<true>(t0, n, c) : columns<false>(t0, n, c);
    for (int64_t t = 0; t < n; ++t) {
      if (p.q.data) write_row(dq + t * Kp, p.K, row_of<IO>(p.dq, u, t0 + t, 0));
      write_row(dk + t * Kp, p.K, row_of<IO>(p.dk, u, t0 + t, 0));
      const int64_t at = gate_at(t0 + t);
      static_cast<F*>(p.dtheta)[at] = sum<F>(load(dtheta + t * W));
      static_cast<F*>(p.deta)[at] = sum<F>(load(deta + t * W));
      static_cast<F*>(p.dalpha)[at] = -sum<F>(load(dkeep + t * W));
    }
  }

  void run() const {
    this->load_gradient(p.d_final_state, GM), this->load_gradient(p.d_final_momentum, GS);
    chunks_from_the_end(u.length, kTitansChunk, [&](int64_t t0, int64_t n) { chunk(t0, n); });
    this->store_gradient(GM, p.dstate), this->store_gradient(GS, p.dmomentum);
  }
};

}  // namespace

void titans_backward(const TitansBackward& p, const Parallel& parallel) {
  by_type(p.type, [&]<class F, class IO>(F, IO) {
    run_heads<TitansBackwardUnit<F, IO>>(p, p.K * p.V, 5, parallel);
  });
}

}  // namespace lrnn::kernels::LRNN_ISA
