#include "kernels/cpu/mlstm_chunk.h"

// Backward of one head of one sequence, chunk by chunk from the end. With the names of
// mlstm_chunk.h, G and gn the gradients of the state that leaves the chunk, and b the denominator:
//
//   dnum = dh / b      ds = -+ (dh . num) / b^2, or 0 where exp(-m) is the larger
//   P    = dnum V^T + ds 1^T          dS = P o W
//   dq   = dS K + e (dnum C^T + ds n)         dk = dS^T Q + r (V G^T + gn)
//   dv   = A^T dnum + r K G
//   G   <- g G + (e Q)^T dnum         gn <- g gn + (e Q)^T ds
//
// The logarithms of the gates collect A o P and the terms with e, r and g. h does not change when
// the state and m are scaled together, up to eps: what is left for m, -eps/b dh . h at each step,
// goes to whichever of i and log sigmoid(f) + m the maximum took.
namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class F, class IO> struct MlstmBackwardUnit {
  const MlstmBackward& p;
  const Unit& u;
  MlstmChunk<F, IO> x;
  F *d, *P, *read;                   // dh then dnum [Cp,ldv]; [Cp,ldc]; C dh [Cp,ldk]
  F *G, *GT, *CT, *VT, *gn;          // [Kp,ldv] [Vp,ldk] [Vp,ldk] [Vp,ldc] [ldk]
  F *scaled, *dq, *dk, *dv;          // [Cp,ldk] [Cp,ldk] [Cp,ldk] [Cp,ldv]
  F *ds, *dlog, *di, *wrote, *rest;  // [Cp]

  MlstmBackwardUnit(const MlstmBackward& p_, const Unit& u_, Bump& bump)
      : p(p_), u(u_), x(p_, u_, bump) {
    const int64_t Kp = x.Kp, Vp = x.Vp, Cp = x.Cp;
    d = bump.take<F>(Cp * x.ldv), P = bump.take<F>(Cp * x.ldc), read = bump.take<F>(Cp * x.ldk);
    G = bump.take<F>(Kp * x.ldv), GT = bump.take<F>(Vp * x.ldk), CT = bump.take<F>(Vp * x.ldk);
    VT = bump.take<F>(Vp * x.ldc), gn = bump.take<F>(x.ldk), scaled = bump.take<F>(Cp * x.ldk);
    dq = bump.take<F>(Cp * x.ldk), dk = bump.take<F>(Cp * x.ldk), dv = bump.take<F>(Cp * x.ldv);
    for (F** y : {&ds, &dlog, &di, &wrote, &rest}) *y = bump.take<F>(Cp);
    if (x.padding()) bump.clear();
  }

  F load_state(int64_t t) const {
    if (t == 0) return x.first_state();
    const F* const from = static_cast<const F*>(p.states) + x.slot_index(t);
    copy_matrix(from, p.V, p.K, p.V, x.C, x.ldv);
    std::memcpy(x.n, from + p.K * p.V, size_t(p.K) * sizeof(F));
    return from[p.K * p.V + p.K];
  }

  // d, ds and P of the chunk; `dlog` begins as what log e gets, and `rest` as what m gets.
  void outputs(int64_t t0, int64_t L) const {
    for (int64_t t = 0; t < L; ++t)
      read_row(row_of<const IO>(p.dh, u, t0 + t, 0), p.V, d + t * x.ldv);
    transpose(x.v, x.ldv, x.Cp, x.Vp, VT, x.ldc);
    product<F>({L, x.Cp, p.V}, {d, x.ldv, 1}, {VT, x.ldc}, {P, x.ldc}, false);
    product<F>({L, x.Kp, p.V}, {d, x.ldv, 1}, {CT, x.ldk}, {read, x.ldk}, false);
    for (int64_t t = 0; t < L; ++t) {
      F* const row = P + t * x.ldc;
      const F* const A = x.A + t * x.ldc;
      const F through_C = x.e[t] * dot(x.q + t * x.ldk, read + t * x.ldk, x.Kp);
      F dh_num = through_C;
      for (int64_t j = 0; j <= t; ++j) dh_num += A[j] * row[j];
      const F b = 1 / x.denominator(t), dh_h = dh_num * b;
      const bool floored = std::abs(x.s[t]) < std::exp(-x.m[t]);
      ds[t] = floored ? F(0) : (x.s[t] < 0 ? dh_h * b : -dh_h * b);
      rest[t] = -F(p.eps) * b * dh_h;
      for (int64_t j = 0; j <= t; ++j) row[j] = row[j] * b + ds[t];
      for (int64_t j = t + 1; j < x.ldc; ++j) row[j] = 0;
      dlog[t] = b * through_C + ds[t] * x.e[t] * dot(x.q + t * x.ldk, x.n, x.Kp);
      scale_row(b, d + t * x.ldv, x.Vp, d + t * x.ldv);
      // e (dnum C^T + ds n), to which dS K is added.
      for (int64_t c = 0; c < x.Kp; c += kLanes<F>)
        store(dq + t * x.ldk + c,
              x.e[t] * (b * load(read + t * x.ldk + c) + ds[t] * load(x.n + c)));
    }
  }

  void nothing(int64_t L) const {
    for (F* y : {ds, dlog, rest}) std::memset(y, 0, size_t(x.Cp) * sizeof(F));
    std::memset(P, 0, size_t(L * x.ldc) * sizeof(F));
    std::memset(dq, 0, size_t(L * x.ldk) * sizeof(F));
    std::memset(d, 0, size_t(L * x.ldv) * sizeof(F));
  }

  // Sums of A o P over rows and columns; P becomes dS.
  void weigh(int64_t L) const {
    std::memset(di, 0, size_t(x.Cp) * sizeof(F));
    for (int64_t t = 0; t < L; ++t) {
      F total = 0;
      for (int64_t j = 0; j <= t; ++j) {
        const F y = x.A[t * x.ldc + j] * P[t * x.ldc + j];
        total += y, di[j] += y;
        P[t * x.ldc + j] *= x.W[t * x.ldc + j];
      }
      dlog[t] += total;
    }
    for (int64_t t = 0; t < L; ++t) dlog[t] -= di[t];
  }

  void products(int64_t L) const {
    product<F>({L, x.Kp, L}, {P, x.ldc, 1}, {x.k, x.ldk}, {dq, x.ldk}, true, Lower{1});
    product<F>({L, x.Kp, p.V}, {x.v, x.ldv, 1}, {GT, x.ldk}, {dk, x.ldk}, false);
    for (int64_t t = 0; t < L; ++t) {
      F* const row = dk + t * x.ldk;
      for (int64_t c = 0; c < x.Kp; c += kLanes<F>)
        store(row + c, x.r[t] * (load(row + c) + load(gn + c)));
      wrote[t] = dot(x.k + t * x.ldk, row, x.Kp);
      di[t] += wrote[t];
    }
    product<F>({L, x.Kp, L}, {P, 1, x.ldc}, {x.q, x.ldk}, {dk, x.ldk}, true, Upper{1});
    x.scale_rows(x.r, x.k, L, x.Kp, x.ldk, scaled);
    product<F>({L, x.Vp, p.K}, {scaled, x.ldk, 1}, {G, x.ldv}, {dv, x.ldv}, false);
    product<F>({L, x.Vp, L}, {x.A, 1, x.ldc}, {d, x.ldv}, {dv, x.ldv}, true, Upper{1});
  }

  // di and df, given what log g gets; returns what is left for m before the chunk.
  F gates(int64_t t0, int64_t L, F dlog_g, F left) const {
    F after = 0;
    for (int64_t t = L - 1; t >= 0; --t) dlog[t] = after += dlog[t];
    F written = 0;
    for (int64_t t = 0; t < L; ++t) dlog[t] += written + dlog_g, written += wrote[t];
    for (int64_t t = L - 1; t >= 0; --t) {
      left += rest[t];
      const int64_t at = x.token_index(t0 + t);
      const F to_input = x.by_input[t] * left;
      left -= to_input;
      static_cast<F*>(p.di)[at] = di[t] + to_input;
      static_cast<F*>(p.df)[at] = (dlog[t] + left) / (1 + std::exp(static_cast<const F*>(p.f)[at]));
    }
    return left;
  }

  F chunk(int64_t t0, int64_t L, F left) const {
    x.load(t0, L, load_state(t0));
    x.attend(L);
    transpose(x.C, x.ldv, x.Kp, x.Vp, CT, x.ldk);
    transpose(G, x.ldv, x.Kp, x.Vp, GT, x.ldk);
    const F g = x.e[L - 1];
    const F dlog_g = g * state_dot();
    p.dh.data ? outputs(t0, L) : nothing(L);
    weigh(L);
    products(L);
    left = gates(t0, L, dlog_g, left);
    for (int64_t t = 0; t < L; ++t) {
      write_row(dq + t * x.ldk, p.K, row_of<IO>(p.dq, u, t0 + t, 0));
      scale_row(F(p.scale), dk + t * x.ldk, x.Kp, dk + t * x.ldk);
      write_row(dk + t * x.ldk, p.K, row_of<IO>(p.dk, u, t0 + t, 0));
      write_row(dv + t * x.ldv, p.V, row_of<IO>(p.dv, u, t0 + t, 0));
    }
    x.scale_rows(x.e, x.q, L, x.Kp, x.ldk, scaled);
    for (int64_t a = 0; a < p.K; ++a) scale_row(g, G + a * x.ldv, x.Vp, G + a * x.ldv);
    product<F>({p.K, x.Vp, L}, {scaled, 1, x.ldk}, {d, x.ldv}, {G, x.ldv}, true);
    for (int64_t c = 0; c < x.Kp; c += kLanes<F>) {
      Vec<F> total = g * load(gn + c);
      for (int64_t t = 0; t < L; ++t) total += ds[t] * load(scaled + t * x.ldk + c);
      store(gn + c, total);
    }
    return left;
  }

  // <G, C> + <gn, n>
  F state_dot() const {
    F total = dot(gn, x.n, x.Kp);
    for (int64_t a = 0; a < p.K; ++a) total += dot(G + a * x.ldv, x.C + a * x.ldv, x.Vp);
    return total;
  }

  // The gradients of the final state; returns what is left for its m.
  F begin() const {
    const int64_t at = x.state_index(), KV = p.K * p.V;
    std::memset(G, 0, size_t(x.Kp * x.ldv) * sizeof(F));
    std::memset(gn, 0, size_t(x.ldk) * sizeof(F));
    if (p.dfinal_C)
      copy_matrix(static_cast<const F*>(p.dfinal_C) + at * KV, p.V, p.K, p.V, G, x.ldv);
    if (p.dfinal_n)
      std::memcpy(gn, static_cast<const F*>(p.dfinal_n) + at * p.K, size_t(p.K) * sizeof(F));
    copy_matrix(static_cast<const F*>(p.final_C) + at * KV, p.V, p.K, p.V, x.C, x.ldv);
    std::memcpy(x.n, static_cast<const F*>(p.final_n) + at * p.K, size_t(p.K) * sizeof(F));
    const F dm = p.dfinal_m ? static_cast<const F*>(p.dfinal_m)[at] : F(0);
    return u.length > 0 ? dm - state_dot() : dm;
  }

  void run() const {
    F left = begin();
    chunks_from_the_end(u.length, kMlstmChunk,
                        [&](int64_t t0, int64_t L) { left = chunk(t0, L, left); });
    if (!p.dC) return;
    const int64_t at = x.state_index();
    copy_matrix(G, x.ldv, p.K, p.V, static_cast<F*>(p.dC) + at * p.K * p.V, p.V);
    std::memcpy(static_cast<F*>(p.dn) + at * p.K, gn, size_t(p.K) * sizeof(F));
    static_cast<F*>(p.dm)[at] = u.length > 0 ? left + state_dot() : left;
  }
};

}  // namespace

void mlstm_backward(const MlstmBackward& p, const Parallel& parallel) {
  by_type(p.type, [&]<class F, class IO>(F, IO) {
    run_heads<MlstmBackwardUnit<F, IO>>(p, p.K * p.V, 4, parallel);
  });
}

}  // namespace lrnn::kernels::LRNN_ISA
