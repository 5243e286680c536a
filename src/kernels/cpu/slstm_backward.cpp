#include "kernels/cpu/matrix.h"
#include "kernels/cpu/slstm_cell.h"

// Backward of one head of a group of sequences, chunk by chunk from the end:
//
//   raw   = h_before R + wx + bias          one product per chunk, from the kept outputs
//   dg    = gradients of raw, step by step; dh of the step before is dg R^T
//   dR   += h_before^T dg                   one product per chunk
//
// h, c/n and everything later depend on (c, n, m) through c e^m and n e^m alone, so m may be taken
// for constant inside. Only what a final state's reader asks of m beyond that, x = dm - c dc - n
// dn, goes to whichever of i and log sigmoid(f) + m the maximum took.
namespace lrnn::kernels::LRNN_ISA {
namespace {

constexpr int64_t kSlstmChunk = 32;

template <class F, class IO> struct SlstmBackwardUnit {
  const SlstmBackward& p;
  const SlstmGroup& group;
  SlstmHead<F, IO> head;
  int64_t ld, gates;          // gates = 4 ld
  F *RT, *dR, *dbias;         // [gates,ld] [D,gates] [gates]
  F *before, *raw, *dg;       // [chunk+1,4,ld] (states) [chunk,gates] [chunk,gates]
  F *dh, *dc, *dn, *x, *row;  // [ld]

  SlstmBackwardUnit(const SlstmBackward& p_, const SlstmGroup& g, Bump& bump)
      : p(p_), group(g), head(p_, g.head, bump), ld(head.ld), gates(4 * ld) {
    RT = bump.take<F>(gates * ld), dR = bump.take<F>(p.D * gates), dbias = bump.take<F>(gates);
    before = bump.take<F>((kSlstmChunk + 1) * gates);
    raw = bump.take<F>(kSlstmChunk * gates), dg = bump.take<F>(kSlstmChunk * gates);
    dh = bump.take<F>(ld), dc = bump.take<F>(ld), dn = bump.take<F>(ld), x = bump.take<F>(ld);
    row = bump.take<F>(ld);
    if (!bump.base) return;
    std::memset(RT, 0, size_t(bump.base + bump.used - reinterpret_cast<char*>(RT)));
    for (int64_t d = 0; d < p.D; ++d)
      for (int64_t j = 0; j < gates; ++j) RT[j * ld + d] = head.R[d * gates + j];
    // Padding divides by n as well.
    for (int64_t t = 0; t <= kSlstmChunk; ++t)
      for (int64_t j = p.D; j < ld; ++j) before[t * gates + 2 * ld + j] = 1;
  }

  const F* final_gradient(const Unit& u, int64_t part) const {
    return head.state_row(static_cast<const F*>(p.d_final_state), u.sequence, part);
  }

  // The states before each of the n steps from t0 on, and after the last.
  void load_states(const Unit& u, int64_t t0, int64_t n) const {
    if (t0 == 0) head.load_state(u, before);
    for (int64_t t = t0 == 0 ? 1 : 0; t <= n; ++t)
      copy_matrix(static_cast<const F*>(p.steps) + head.step_index(u, t0 + t - 1), p.D, 4, p.D,
                  before + t * gates, ld);
  }

  void step(const Unit& u, int64_t t, int64_t i) const {
    const F *const old = before + i * gates, *const now = old + gates;
    if (p.dh.data) {
      read_row(row_of<const IO>(p.dh, u, t, 0), p.D, row);
      for (int64_t j = 0; j < ld; j += kLanes<F>) store(dh + j, load(dh + j) + load(row + j));
    }
    F* const out = dg + i * gates;
    for (int64_t j = 0; j < ld; j += kLanes<F>) {
      const Vec<F> c = load(old + ld + j), n = load(old + 2 * ld + j), h = load(now + j);
      const SlstmGates<F> gate(raw + i * gates + j, ld, load(old + 3 * ld + j), n);
      const Vec<F> d = load(dh + j), per_count = d / load(now + 2 * ld + j);
      const Vec<F> cell = load(dc + j) + per_count * gate.o, count = load(dn + j) - per_count * h;
      const Vec<F> rest = load(x + j), of_input = gate.by_input * rest, of_forget = rest - of_input;
      const Vec<F> da = gate.forget * (c * cell + n * count) + of_forget;
      store(out + j, gate.input * (gate.z * cell + count) + of_input);
      store(out + ld + j, da * sigmoid(-load(raw + i * gates + ld + j)));
      store(out + 2 * ld + j, cell * gate.input * (1 - gate.z * gate.z));
      store(out + 3 * ld + j, d * h * (1 - gate.o));
      store(dc + j, gate.forget * cell), store(dn + j, gate.forget * count);
      store(x + j, of_forget);
    }
    row_times(out, gates, RT, ld, ld, dh);
    for (int64_t g = 0; g < 4; ++g) write_row(out + g * ld, p.D, row_of<IO>(p.dwx, u, t, g));
  }

  void chunk(const Unit& u, int64_t t0, int64_t n) const {
    load_states(u, t0, n);
    product<F>({n, gates, p.D}, {before, gates, 1}, {head.R, gates}, {raw, gates}, false);
    for (int64_t i = 0; i < n; ++i) head.add_inputs(u, t0 + i, row, raw + i * gates);
    for (int64_t i = n - 1; i >= 0; --i) step(u, t0 + i, i);
    product<F>({p.D, gates, n}, {before, 1, gates}, {dg, gates}, {dR, gates}, true);
    for (int64_t i = n - 1; i >= 0; --i)
      for (int64_t j = 0; j < gates; j += kLanes<F>)
        store(dbias + j, load(dbias + j) + load(dg + i * gates + j));
  }

  // dh, dc, dn and x after the last step; `now` is the state there.
  void begin(const Unit& u, const F* now) const {
    for (F* part : {dh, dc, dn, x}) std::memset(part, 0, size_t(ld) * sizeof(F));
    if (!p.d_final_state) return;
    F* const parts[] = {dh, dc, dn, x};
    for (int64_t part = 0; part < 4; ++part)
      std::memcpy(parts[part], final_gradient(u, part), size_t(p.D) * sizeof(F));
    for (int64_t j = 0; j < p.D; ++j) x[j] -= now[j] * dc[j] + now[p.D + j] * dn[j];
  }

  void finish(const Unit& u) const {
    if (!p.dstate) return;
    F* const to = static_cast<F*>(p.dstate);
    const F* const parts[] = {dh, dc, dn};
    for (int64_t part = 0; part < 3; ++part)
      std::memcpy(head.state_row(to, u.sequence, part), parts[part], size_t(p.D) * sizeof(F));
    F* const dm = head.state_row(to, u.sequence, 3);
    for (int64_t j = 0; j < p.D; ++j)
      dm[j] = x[j] + before[ld + j] * dc[j] + before[2 * ld + j] * dn[j];
  }

  void sequence(const Unit& u) const {
    if (u.length == 0) return pass_through(u);
    begin(u, static_cast<const F*>(p.steps) + head.step_index(u, u.length - 1) + p.D);
    chunks_from_the_end(u.length, kSlstmChunk, [&](int64_t t0, int64_t n) { chunk(u, t0, n); });
    finish(u);
  }

  void pass_through(const Unit& u) const {
    if (!p.dstate) return;
    for (int64_t part = 0; part < 4; ++part) {
      F* const to = head.state_row(static_cast<F*>(p.dstate), u.sequence, part);
      for (int64_t j = 0; j < p.D; ++j) to[j] = p.d_final_state ? final_gradient(u, part)[j] : F(0);
    }
  }

  void run() const {
    each_sequence(p, group, [&](const Unit& u) { sequence(u); });
    const int64_t at = group.group * p.H + group.head;
    copy_matrix(dR, ld, p.D * 4, p.D, static_cast<F*>(p.dR) + at * p.D * 4 * p.D, p.D);
    if (p.dbias) copy_matrix(dbias, ld, 4, p.D, static_cast<F*>(p.dbias) + at * 4 * p.D, p.D);
  }
};

}  // namespace

void slstm_backward(const SlstmBackward& p, const Parallel& parallel) {
  by_type(p.type,
          [&]<class F, class IO>(F, IO) { run_slstm<SlstmBackwardUnit<F, IO>>(p, parallel); });
}

}  // namespace lrnn::kernels::LRNN_ISA
