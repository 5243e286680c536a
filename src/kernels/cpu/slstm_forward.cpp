#include "kernels/cpu/slstm_cell.h"

// Forward of one head of a group of sequences, token by token: the cell is in slstm_cell.h.
namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class F, class IO> struct SlstmForwardUnit {
  const SlstmForward& p;
  const SlstmGroup& group;
  SlstmHead<F, IO> head;
  F *state, *raw, *row;  // [4,ld] each but row [ld]

  SlstmForwardUnit(const SlstmForward& p_, const SlstmGroup& g, Bump& bump)
      : p(p_), group(g), head(p_, g.head, bump) {
    state = bump.take<F>(4 * head.ld), raw = bump.take<F>(4 * head.ld);
    row = bump.take<F>(head.ld);
    if (bump.base) std::memset(row, 0, size_t(head.ld) * sizeof(F));
  }

  void step(const Unit& u, int64_t t) const {
    const int64_t ld = head.ld;
    F *const h = state, *const c = state + ld, *const n = state + 2 * ld, *const m = state + 3 * ld;
    row_times(h, p.D, head.R, 4 * ld, 4 * ld, raw);
    head.add_inputs(u, t, row, raw);
    for (int64_t j = 0; j < ld; j += kLanes<F>) {
      const SlstmGates<F> gate(raw + j, ld, load(m + j), load(n + j));
      const Vec<F> cell = gate.forget * load(c + j) + gate.input * gate.z;
      const Vec<F> count = gate.forget * load(n + j) + gate.input;
      store(h + j, gate.o * (cell / count));
      store(c + j, cell), store(n + j, count), store(m + j, gate.m);
    }
    write_row(h, p.D, row_of<IO>(p.h, u, t, 0));
    if (p.steps)
      copy_matrix(state, ld, 4, p.D, static_cast<F*>(p.steps) + head.step_index(u, t), p.D);
  }

  void sequence(const Unit& u) const {
    head.load_state(u, state);
    for (int64_t t = 0; t < u.length; ++t) step(u, t);
    for (int64_t part = 0; part < 4; ++part)
      std::memcpy(head.state_row(static_cast<F*>(p.final_state), u.sequence, part),
                  state + part * head.ld, size_t(p.D) * sizeof(F));
  }

  void run() const {
    each_sequence(p, group, [&](const Unit& u) { sequence(u); });
  }
};

}  // namespace

void slstm_forward(const SlstmForward& p, const Parallel& parallel) {
  by_type(p.type,
          [&]<class F, class IO>(F, IO) { run_slstm<SlstmForwardUnit<F, IO>>(p, parallel); });
}

}  // namespace lrnn::kernels::LRNN_ISA
