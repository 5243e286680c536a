#pragma once
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/functions.h"
#include "kernels/slstm.h"

// What both directions of time share: the gates of one vector of units, and how a head's arrays are
// laid out. Rows of gates are [4,ld], with the units of a gate padded to whole vectors.
namespace lrnn::kernels::LRNN_ISA {
namespace {

// One head of the sequences first .. last-1.
struct SlstmGroup {
  int64_t head, group, first, last;
};
template <class Problem, class Body>
void each_sequence(const Problem& p, const SlstmGroup& of, Body body) {
  const Units units{p.S, p.H, p.T, p.cu_seqlens, 0};
  for (int64_t s = of.first; s < of.last; ++s) body(units(s, of.head));
}

// With a = log sigmoid(f) + m the new m is the larger of i and a (i at the first step), so that one
// of the two gates is 1 and the other exp(-|i - a|).
template <class F> struct SlstmGates {
  Vec<F> m, input, forget, z, o;
  Vec<F> by_input;  // 1 where i is the new m, else 0

  SlstmGates(const F* raw, int64_t ld, Vec<F> m_before, Vec<F> n_before) {
    const Vec<F> zero{}, one = splat<F>(1);
    const Vec<F> i = load(raw), a = log_sigmoid<F>(load(raw + ld)) + m_before;
    const Vec<F> smaller = exp_(i < a ? i - a : a - i);
    by_input = i < a ? zero : one;
    by_input = n_before == zero ? one : by_input;
    m = by_input == one ? i : a;
    input = by_input == one ? one : smaller;
    forget = a < i ? smaller : one;
    z = tanh(load(raw + 2 * ld)), o = sigmoid(load(raw + 3 * ld));
  }
};

template <class F, class IO> struct SlstmHead {
  const SlstmInputs& p;
  int64_t head, ld;  // of D, in whole vectors
  F *R, *bias;       // [D,4,ld] [4,ld]

  SlstmHead(const SlstmInputs& p_, int64_t head_, Bump& bump)
      : p(p_), head(head_), ld(vectors<F>(p_.D) * kLanes<F>) {
    R = bump.take<F>(p.D * 4 * ld), bias = bump.take<F>(4 * ld);
    if (!bump.base) return;
    std::memset(R, 0, size_t(p.D * 4 * ld) * sizeof(F));
    std::memset(bias, 0, size_t(4 * ld) * sizeof(F));
    copy_matrix(static_cast<const F*>(p.R) + head * p.D * 4 * p.D, p.D, p.D * 4, p.D, R, ld);
    if (p.bias) copy_matrix(static_cast<const F*>(p.bias) + head * 4 * p.D, p.D, 4, p.D, bias, ld);
  }

  // Row `part` of the state of a sequence, in an array [S,4,H,D].
  template <class T> T* state_row(T* states, int64_t sequence, int64_t part) const {
    return states + ((sequence * 4 + part) * p.H + head) * p.D;
  }
  int64_t step_index(const Unit& u, int64_t t) const {
    return ((u.batch * p.H + head) * p.T + u.begin + t) * 4 * p.D;
  }
  // state [4,ld]: what the sequence starts from.
  void load_state(const Unit& u, F* state) const {
    std::memset(state, 0, size_t(4 * ld) * sizeof(F));
    if (!p.state) return;
    for (int64_t part = 0; part < 4; ++part)
      std::memcpy(state + part * ld, state_row(static_cast<const F*>(p.state), u.sequence, part),
                  size_t(p.D) * sizeof(F));
  }
  void add_inputs(const Unit& u, int64_t t, F* row, F* raw) const {
    for (int64_t g = 0; g < 4; ++g) {
      read_row(row_of<const IO>(p.wx, u, t, g), p.D, row);
      for (int64_t c = 0; c < ld; c += kLanes<F>)
        store(raw + g * ld + c, load(raw + g * ld + c) + load(row + c) + load(bias + g * ld + c));
    }
  }
};

// out[0 .. n) = sum_k x[k] A[k, 0 .. n): NV vectors at a time, U sums each to hide the latency.
template <class F, int NV, int U>
inline void row_times_block(const F* x, int64_t depth, const F* A, int64_t row, F* out) {
  constexpr int W = kLanes<F>;
  Vec<F> sums[U][NV] = {};
  int64_t k = 0;
  for (; k + U <= depth; k += U)
    for (int u = 0; u < U; ++u)
      for (int n = 0; n < NV; ++n)
        sums[u][n] = fma<F>(splat<F>(x[k + u]), load(A + (k + u) * row + n * W), sums[u][n]);
  for (; k < depth; ++k)
    for (int n = 0; n < NV; ++n)
      sums[0][n] = fma<F>(splat<F>(x[k]), load(A + k * row + n * W), sums[0][n]);
  for (int n = 0; n < NV; ++n) {
    for (int u = 1; u < U; ++u) sums[0][n] += sums[u][n];
    store(out + n * W, sums[0][n]);
  }
}

template <class F>
void row_times(const F* x, int64_t depth, const F* A, int64_t row, int64_t columns, F* out) {
  constexpr int W = kLanes<F>;
  int64_t c = 0;
  for (; c + 8 * W <= columns; c += 8 * W) row_times_block<F, 8, 1>(x, depth, A + c, row, out + c);
  for (; c + 4 * W <= columns; c += 4 * W) row_times_block<F, 4, 2>(x, depth, A + c, row, out + c);
  for (; c + 2 * W <= columns; c += 2 * W) row_times_block<F, 2, 4>(x, depth, A + c, row, out + c);
  for (; c < columns; c += W) row_times_block<F, 1, 8>(x, depth, A + c, row, out + c);
}

template <class Which, class Problem> void run_slstm(const Problem& p, const Parallel& parallel) {
  const int64_t groups = slstm_groups(p.S);
  const double work = double(p.B * p.T * p.H) * double(4 * p.D * p.D + 100 * p.D);
  run_pieces(groups * p.H, work, parallel, [&](int64_t i) {
    const int64_t g = i / p.H;
    run_on_scratch<Which>(p, SlstmGroup{i % p.H, g, g * p.S / groups, (g + 1) * p.S / groups});
  });
}

}  // namespace
}  // namespace lrnn::kernels::LRNN_ISA
