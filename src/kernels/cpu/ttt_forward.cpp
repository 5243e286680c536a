#include "kernels/cpu/ttt_piece.h"

// Forward of one head of one sequence, a mini-batch at a time: the products are in ttt_piece.h.
namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class F, class IO> struct TttForwardUnit : TttPiece<F, IO> {
  using Base = TttPiece<F, IO>;
  using Base::D, Base::Dp, Base::u;
  const TttForward& out;
  TttWeights<F> now, first;

  TttForwardUnit(const TttForward& p, const Unit& u_, Bump& bump) : Base(p, u_, bump), out(p) {
    for (TttWeights<F>* x : {&now, &first}) *x = {bump.take<F>(Dp * Dp), bump.take<F>(Dp)};
    bump.clear();  // what pads rows and matrices
  }

  void keep(int64_t slot) const {
    F* const to = static_cast<F*>(out.kept) + (slot * out.H + u.head) * (D + 1) * D;
    copy_matrix(now.W, Dp, D, D, to, D), copy_matrix(now.b, Dp, 1, D, to + D * D, D);
  }

  void write_outputs(int64_t t0, int64_t n) const {
    for (int64_t t = 0; t < n; ++t) {
      F* const y = this->P + t * Dp;
      for (int64_t i = 0; i < Dp; i += kLanes<F>)
        store(y + i, fma<F>(load(this->weight + i), load(y + i),
                            load(this->bias + i) + load(this->q + t * Dp + i)));
      write_row(y, D, row_of<IO>(out.o, u, t0 + t, 0));
    }
  }

  void run() const {
    this->begin();
    this->load_state(out.W, out.b, 0, now), this->load_state(out.W, out.b, 1, first);
    const int64_t position = this->position(), slot = this->first_slot();
    this->pieces([&](int64_t piece, int64_t t0, int64_t n) {
      if (piece > 0 || position == 0) this->copy(now, first);
      if (out.kept) keep(slot + piece);
      this->compute(t0, n, now, first);
      if (out.q.data) write_outputs(t0, n);
      this->add_outer(this->k, this->step, n, now);
    });
    this->store_state(now, 0, out.final_W, out.final_b);
    this->store_state(first, 1, out.final_W, out.final_b);
    static_cast<F*>(out.final_position)[u.sequence] = F((position + u.length) % out.mini_batch);
  }
};

}  // namespace

void ttt_forward(const TttForward& p, const Parallel& parallel) {
  by_type(p.type, [&]<class F, class IO>(F, IO) {
    run_heads<TttForwardUnit<F, IO>>(p, p.D * p.D, 3, parallel);
  });
}

}  // namespace lrnn::kernels::LRNN_ISA
