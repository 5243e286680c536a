#include "kernels/cpu/mlstm_chunk.h"

// Forward of one head of one sequence, chunk by chunk: the formulas are in mlstm_chunk.h.
namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class F, class IO> struct MlstmForwardUnit {
  const MlstmForward& p;
  const Unit& u;
  MlstmChunk<F, IO> x;
  F *scaled, *out;  // [Cp,ldk]: e q, then r k; [Cp,ldv]

  MlstmForwardUnit(const MlstmForward& p_, const Unit& u_, Bump& bump)
      : p(p_), u(u_), x(p_, u_, bump) {
    scaled = bump.take<F>(x.Cp * x.ldk), out = bump.take<F>(x.Cp * x.ldv);
    if (x.padding()) bump.clear();
  }

  F chunk(int64_t t0, int64_t L, F m_before) const {
    x.load(t0, L, m_before);
    x.attend(L);
    x.scale_rows(x.e, x.q, L, x.Kp, x.ldk, scaled);
    product<F>({L, x.Vp, p.K}, {scaled, x.ldk, 1}, {x.C, x.ldv}, {out, x.ldv}, false);
    product<F>({L, x.Vp, L}, {x.A, x.ldc, 1}, {x.v, x.ldv}, {out, x.ldv}, true, Lower{1});
    for (int64_t t = 0; t < L; ++t) {
      F* const row = out + t * x.ldv;
      scale_row(1 / x.denominator(t), row, x.Vp, row);
      write_row(row, p.V, row_of<IO>(p.h, u, t0 + t, 0));
    }
    const F g = x.e[L - 1];
    x.scale_rows(x.r, x.k, L, x.Kp, x.ldk, scaled);
    for (int64_t a = 0; a < p.K; ++a) scale_row(g, x.C + a * x.ldv, x.Vp, x.C + a * x.ldv);
    product<F>({p.K, x.Vp, L}, {scaled, 1, x.ldk}, {x.v, x.ldv}, {x.C, x.ldv}, true);
    for (int64_t c = 0; c < x.Kp; c += kLanes<F>) {
      Vec<F> total = g * load(x.n + c);
      for (int64_t t = 0; t < L; ++t) total += load(scaled + t * x.ldk + c);
      store(x.n + c, total);
    }
    return x.m[L - 1];
  }

  void keep(int64_t t, F m) const {
    F* const to = static_cast<F*>(p.states) + x.slot_index(t);
    copy_matrix(x.C, x.ldv, p.K, p.V, to, p.V);
    std::memcpy(to + p.K * p.V, x.n, size_t(p.K) * sizeof(F));
    to[p.K * p.V + p.K] = m;
  }

  void run() const {
    F m = x.first_state();
    for (int64_t t = 0; t < u.length; t += kMlstmChunk) {
      if (p.states && t > 0) keep(t, m);
      m = chunk(t, std::min(kMlstmChunk, u.length - t), m);
    }
    const int64_t at = x.state_index();
    copy_matrix(x.C, x.ldv, p.K, p.V, static_cast<F*>(p.final_C) + at * p.K * p.V, p.V);
    std::memcpy(static_cast<F*>(p.final_n) + at * p.K, x.n, size_t(p.K) * sizeof(F));
    static_cast<F*>(p.final_m)[at] = m;
  }
};

}  // namespace

void mlstm_forward(const MlstmForward& p, const Parallel& parallel) {
  by_type(p.type, [&]<class F, class IO>(F, IO) {
    run_heads<MlstmForwardUnit<F, IO>>(p, p.K * p.V, 4, parallel);
  });
}

}  // namespace lrnn::kernels::LRNN_ISA
