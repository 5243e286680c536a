#pragma once
#include "kernels/cpu/blocks.h"

// What the backwards of the diagonal recurrence and of Titans' memory share: they go through chunks
// of tokens from the last to the first, W columns of a state [K,V] at a time. Columns lie
// transposed, keys in the lanes.
namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class F, class IO, class Problem> struct ColumnsUnit {
  static constexpr int W = kLanes<F>;
  const Problem& p;
  const Unit& u;
  int64_t Kp, Vp;  // K and V rounded up to vectors

  ColumnsUnit(const Problem& p_, const Unit& u_)
      : p(p_), u(u_), Kp((p_.K + W - 1) / W * W), Vp((p_.V + W - 1) / W * W) {}

  // This unit's matrix of a state [S,H,K,V], or null.
  template <class T> T* own(T* of) const {
    return of ? of + (u.sequence * p.H + u.head) * p.K * p.V : nullptr;
  }
  // What forward kept before token t > 0, of `matrices` in a row.
  const F* kept(int64_t t, int64_t chunk, int64_t matrices) const {
    const int64_t slots = p.T / chunk, slot = u.begin / chunk + t / chunk - 1;
    return static_cast<const F*>(p.states) +
           ((u.batch * p.H + u.head) * slots + slot) * matrices * p.K * p.V;
  }

  // The columns c .. c + W of a matrix [K,V], or of zeros, transposed.
  void load_columns(const F* from, int64_t c, F* to) const {
    const int64_t columns = p.V - c < W ? p.V - c : W;
    std::memset(to, 0, size_t(W * Kp) * sizeof(F));
    if (!from) return;
    for (int64_t i = 0; i < p.K; ++i)
      for (int64_t j = 0; j < columns; ++j) to[j * Kp + i] = from[i * p.V + c + j];
  }
  // A gradient of a state, [Vp][Kp] here, from and to where states lie.
  void load_gradient(const void* from, F* to) const {
    if (!from) return;
    for (int64_t c = 0; c < p.V; c += W)
      load_columns(own(static_cast<const F*>(from)), c, to + c * Kp);
  }
  void store_gradient(const F* from, void* to) const {
    F* const out = own(static_cast<F*>(to));
    if (!out) return;
    for (int64_t i = 0; i < p.K; ++i)
      for (int64_t c = 0; c < p.V; ++c) out[i * p.V + c] = from[c * Kp + i];
  }

  // W values of a row of V, zeros beyond.
  Vec<F> values(const Rows& from, int64_t t, int64_t c) const {
    const int64_t n = p.V - c < W ? p.V - c : W;
    Vec<F> x[1];
    load_block<F, 1>(row_of<const IO>(from, u, t, 0) + c, n, x);
    return x[0];
  }
};

}  // namespace
}  // namespace lrnn::kernels::LRNN_ISA
