#include "kernels/cpu/ttt_piece.h"

// Backward of one head of one sequence, piece by piece from the last. dW and dA are the gradients
// of the weights now and of those when the mini-batch began; with the words of ttt_piece.h, for a
// piece of n tokens:
//
//   dP = through the norm of do weight     dq = do + dP W^T - E K,   E_ts = eta_s G_s dP_t, s <= t
//   R = K dW                               dk = -E^T Q + step dW^T + ..
//   dG = -eta (C^T dP + R)                 deta_s = -sum_t C_ts G_s dP_t - R_s G_s
//   dZ = through G and the norm below it   dk += dZ A^T,   dA += K^T dZ,   dW += Q^T dP
//
// Where a mini-batch begins, A was W: dW += dA, and dA begins anew.
namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class F, class IO> struct TttBackwardUnit : TttPiece<F, IO> {
  using Base = TttPiece<F, IO>;
  using Base::D, Base::Dp, Base::u, Base::most, Base::k, Base::q, Base::x, Base::G, Base::eta;
  const TttBackward& out;
  TttWeights<F> now, first, d_now, d_first;
  F* turned;                     // [Dp][Dp], a matrix transposed
  F *d_o, *dP, *dG, *dq, *dk;    // [most][Dp]; dG becomes dZ
  F *E, *CE;                     // [most][most]: -eta_s G_s dP_t and -eta_s C_ts for s <= t, else 0
  F *dweight, *dbias, *dg, *dx;  // [Dp]

  TttBackwardUnit(const TttBackward& p, const Unit& u_, Bump& bump) : Base(p, u_, bump), out(p) {
    for (TttWeights<F>* w : {&now, &first, &d_now, &d_first})
      *w = {bump.take<F>(Dp * Dp), bump.take<F>(Dp)};
    turned = bump.take<F>(Dp * Dp);
    for (F** rows : {&d_o, &dP, &dG, &dq, &dk}) *rows = bump.take<F>(most * Dp);
    for (F** pairs : {&E, &CE}) *pairs = bump.take<F>(most * most);
    for (F** row : {&dweight, &dbias, &dg, &dx}) *row = bump.take<F>(Dp);
    bump.clear();  // what pads rows and matrices
  }

  void load_kept(int64_t slot) const {
    const F* const from = static_cast<const F*>(out.kept) + (slot * out.H + u.head) * (D + 1) * D;
    copy_matrix(from, D, D, D, now.W, Dp), copy_matrix(from + D * D, D, 1, D, now.b, Dp);
  }
  F& deta(int64_t t) const {
    return static_cast<F*>(out.deta)[(u.batch * out.T + u.begin + t) * out.H + u.head];
  }
  // to += rows W^T
  void add_transposed(const F* rows, int64_t n, const F* W, F* to) const {
    transpose(W, Dp, Dp, Dp, turned, Dp);
    product<F>({n, Dp, D}, {rows, Dp, 1}, {turned, Dp}, {to, Dp}, true);
  }
  static void add(F* to, Vec<F> y) { store(to, load(to) + y); }

  // What the outputs ask: dq, and their shares of dk, dG and deta.
  void outputs(int64_t t0, int64_t n) const {
    for (int64_t t = 0; t < n; ++t) {
      F *const d = d_o + t * Dp, *const normed = this->P + t * Dp;
      read_row(row_of<const IO>(out.d_o, u, t0 + t, 0), D, d);
      std::memcpy(dq + t * Dp, d, size_t(Dp) * sizeof(F));
      for (int64_t i = 0; i < Dp; i += kLanes<F>) {
        add(dweight + i, load(d + i) * load(normed + i)), add(dbias + i, load(d + i));
        store(d + i, load(d + i) * load(this->weight + i));
      }
      through_norm(d, normed, this->P_one_over[t], D, Dp, dP + t * Dp);
    }
    for (int64_t t = 0; t < n; ++t)
      for (int64_t s = 0; s < n; ++s) {
        const int64_t at = t * most + s;
        const F c = s <= t ? this->C[at] : 0;
        const F read = s <= t ? dot(G + s * Dp, dP + t * Dp, Dp) : 0;
        deta(t0 + s) -= c * read, E[at] = -eta[s] * read, CE[at] = -eta[s] * c;
      }
    add_transposed(dP, n, now.W, dq);
    product<F, Lower>({n, Dp, n}, {E, most, 1}, {k, Dp}, {dq, Dp}, true);
    product<F>({n, Dp, n}, {E, 1, most}, {q, Dp}, {dk, Dp}, true);
    product<F>({n, Dp, n}, {CE, 1, most}, {dP, Dp}, {dG, Dp}, true);
    for (int64_t t = 0; t < n; ++t) write_row(dq + t * Dp, D, row_of<IO>(out.dq, u, t0 + t, 0));
  }

  // What the weights after the piece ask of its steps. R lies where do was.
  void steps(int64_t t0, int64_t n) const {
    F* const R = d_o;
    this->through(k, n, d_now, R);
    for (int64_t t = 0; t < n; ++t) {
      deta(t0 + t) -= dot(R + t * Dp, G + t * Dp, Dp);
      for (int64_t i = 0; i < Dp; i += kLanes<F>)
        add(dG + t * Dp + i, -eta[t] * load(R + t * Dp + i));
    }
    add_transposed(this->step, n, d_now.W, dk);
  }

  // From dG of a token to dZ, in its place: G = (g - mean(g) - x mean(g x)) / root, where x and the
  // root are functions of Z, and g of x.
  void through_gradient(int64_t t0, int64_t t) const {
    const F *const x_t = x + t * Dp, *const g = this->g + t * Dp,
                   *const error = this->error + t * Dp;
    F* const h = dG + t * Dp;
    const F one_over = this->one_over[t], gx = dot(g, x_t, Dp) / F(D), hx = dot(h, x_t, Dp) / F(D),
            droot = -one_over * dot(h, G + t * Dp, Dp);
    through_norm(h, x_t, one_over, D, Dp, dg);
    for (int64_t i = 0; i < Dp; i += kLanes<F>) {
      const Vec<F> w = load(this->weight + i), d = load(dg + i);
      store(dx + i, w * w * d - one_over * (gx * load(h + i) + hx * load(g + i)));
      add(dweight + i, d * (load(error + i) + w * load(x_t + i)));
      add(dbias + i, w * d), add(dk + t * Dp + i, w * d);
      store(dg + i, -w * d);  // of v
    }
    write_row(dg, D, row_of<IO>(out.dv, u, t0 + t, 0));
    through_norm(dx, x_t, one_over, D, Dp, h);
    for (int64_t i = 0; i < Dp; i += kLanes<F>) add(h + i, droot / F(D) * load(x_t + i));
  }

  void piece(int64_t t0, int64_t n) const {
    this->compute(t0, n, now, first);
    for (F* rows : {dG, dk}) std::memset(rows, 0, size_t(n * Dp) * sizeof(F));
    for (int64_t t = 0; t < n; ++t) deta(t0 + t) = 0;
    if (out.q.data) outputs(t0, n);
    steps(t0, n);
    for (int64_t t = 0; t < n; ++t) through_gradient(t0, t);
    add_transposed(dG, n, first.W, dk);
    for (int64_t t = 0; t < n; ++t) write_row(dk + t * Dp, D, row_of<IO>(out.dk, u, t0 + t, 0));
    this->add_outer(k, dG, n, d_first);
    if (out.q.data) this->add_outer(q, dP, n, d_now);
  }

  // Where a mini-batch begins.
  void join() const {
    for (int64_t i = 0; i < Dp * Dp; i += kLanes<F>) add(d_now.W + i, load(d_first.W + i));
    for (int64_t i = 0; i < Dp; i += kLanes<F>) add(d_now.b + i, load(d_first.b + i));
    std::memset(d_first.W, 0, size_t(Dp * Dp) * sizeof(F));
    std::memset(d_first.b, 0, size_t(Dp) * sizeof(F));
  }

  void run() const {
    this->begin();
    this->load_state(out.d_final_W, out.d_final_b, 0, d_now);
    this->load_state(out.d_final_W, out.d_final_b, 1, d_first);
    const int64_t position = this->position(), slot = this->first_slot(), m = out.mini_batch;
    const int64_t pieces = this->pieces([](int64_t, int64_t, int64_t) {});
    for (int64_t end = u.length, i = pieces - 1; i >= 0; --i) {
      const int64_t begin = i == 0 ? 0 : i * m - position;
      const bool whole = i > 0 || position == 0;  // its mini-batch began with it
      load_kept(slot + i);
      if (whole)
        this->copy(now, first);
      else
        this->load_state(out.W, out.b, 1, first);
      piece(begin, end - begin);
      if (whole) join();
      end = begin;
    }
    this->store_state(d_now, 0, out.dW, out.db), this->store_state(d_first, 1, out.dW, out.db);
    F* const norm = static_cast<F*>(out.dnorm) + (u.sequence * out.H + u.head) * 2 * D;
    write_row(dweight, D, norm), write_row(dbias, D, norm + D);
  }
};

}  // namespace

void ttt_backward(const TttBackward& p, const Parallel& parallel) {
  by_type(p.type, [&]<class F, class IO>(F, IO) {
    run_heads<TttBackwardUnit<F, IO>>(p, p.D * p.D, 9, parallel);
  });
}

}  // namespace lrnn::kernels::LRNN_ISA
