#include <cmath>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/delta_product_channels.h"
#include "kernels/cpu/delta_product_scan.h"
#include "kernels/delta_product.h"

// Forward of a stretch of one head of one sequence, C = 1 or 2 micro-steps for one pass over the
// state. A pass reads S for the next ones; the second of a pair adds by itself what the first will
// write:
//
//   e_0 = v_0 - a_0 S^T k_0                                     d_0 = beta_0 e_0
//   e_1 = v_1 - a_1 (a_0 S^T k_1 + (k_1 . k_0) d_0)             d_1 = beta_1 e_1
//   S  <- a_1 a_0 S + k_0 (a_1 d_0)^T + k_1 d_1^T
//
// with a the gate where a token begins and 1 elsewhere. A token that ends between the two (N is
// odd) has its output from the state before them: o = a_0 S^T q + (q . k_0) d_0.
//
// With a gate per key channel a is a diagonal, and moves to the rows that are read: S^T (a_0 k_0),
// S^T (a_1 a_0 k_1) and S^T (a_0 q), k_1 . (a_1 k_0), and a_1 k_0 is what is written of d_0.
namespace lrnn::kernels::LRNN_ISA {
namespace {

// Whether to take pairs. They do the same multiply-adds with half the loads and stores of the
// state, which limit a large one; a small one waits for the products of keys instead, and 16
// registers are too few. docs/design.md has the times.
inline bool in_pairs(const DeltaProductForward& p, const Unit& u) {
  if (p.steps) return p.steps == 2;
  return kManyRegisters && p.K * p.N >= 64 && u.length * p.N > 1;
}

template <class F, class IO> struct ForwardUnit {
  const DeltaProductForward& p;
  Unit u, next;                  // next: whose rows come after this stretch,
  int64_t next_from;             // and from which token on
  F* S;                          // [K, row]
  F *key_buffer, *query_buffer;  // four rows each
  F* gate_buffer;                // two groups of kGateRows, for gates of channels
  int64_t row;
  int64_t from, to;  // the stretch: tokens of the sequence

  struct Step {
    int64_t t, j;  // token of the sequence, micro-step of the token
  };
  Step after(Step s) const { return s.j + 1 < p.N ? Step{s.t, s.j + 1} : Step{s.t + 1, 0}; }
  bool ends_token(Step s) const { return p.q.data && s.j + 1 == p.N; }

  F beta(Step s) const {
    return static_cast<const F*>(
        p.beta)[((u.batch * p.T + u.begin + s.t) * p.N + s.j) * p.H + u.head];
  }
  F gate(Step s) const {
    if (!p.log_gate || s.j > 0) return 1;
    return std::exp(
        static_cast<const F*>(p.log_gate)[(u.batch * p.T + u.begin + s.t) * p.H + u.head]);
  }
  const F* gate_row(const Unit& of, int64_t t) const {
    return static_cast<const F*>(p.log_gate) +
           ((of.batch * p.T + of.begin + t) * p.H + of.head) * p.K;
  }
  F* error(const Unit& of, Step s) const {
    return static_cast<F*>(p.error) +
           (((of.batch * p.H + of.head) * p.T + of.begin + s.t) * p.N + s.j) * p.V;
  }
  F* kept_state(int64_t t) const {
    const int64_t segment = delta_product_segment(p.N), slots = p.T / segment;
    const int64_t slot = u.begin / segment + t / segment - 1;
    return static_cast<F*>(p.states) + ((u.batch * p.H + u.head) * slots + slot) * p.K * p.V;
  }

  // What step s and, at its first, its token need, for the columns [c, c + n). Always inlined: GCC
  // takes a function that only prefetches for one without effect, and drops the call.
  template <bool kChannels>
  [[gnu::always_inline]] void prefetch(Step s, int64_t c, int64_t n) const {
    const Unit& of = s.t < to ? u : next;
    if (s.t >= to) s.t += next_from - to;
    if (s.t >= of.length) return;
    prefetch_row(row_of<const IO>(p.k, of, s.t, s.j), p.K);
    prefetch_row(row_of<const IO>(p.v, of, s.t, s.j) + c, n);
    if (p.error) prefetch_to_write(error(of, s) + c, n);
    if constexpr (kChannels)
      if (s.j == 0) prefetch_row(gate_row(of, s.t), p.K);
    if (!p.q.data || s.j > 0) return;
    prefetch_row(row_of<const IO>(p.q, of, s.t, 0), p.K);
    prefetch_to_write(row_of<IO>(p.o, of, s.t, 0) + c, n);
  }

  // The pass for C keys after which `reads` rows are read, and a query or not.
  template <class Gate, int NV, int C> static auto pass(bool gated, int reads, bool has_query) {
    using Pass =
        void (*)(const ForwardBlock<F, NV>&, Gate, const F* const*, const F* const*, const F*);
    constexpr int A = C, B = C == 2 ? 3 : 1;  // besides none, so many may be read
    static constexpr Pass passes[12] = {
        forward_pass<F, Gate, NV, C, 0, false, false>, forward_pass<F, Gate, NV, C, 0, true, false>,
        forward_pass<F, Gate, NV, C, 0, false, true>,  forward_pass<F, Gate, NV, C, 0, true, true>,
        forward_pass<F, Gate, NV, C, A, false, false>, forward_pass<F, Gate, NV, C, A, true, false>,
        forward_pass<F, Gate, NV, C, A, false, true>,  forward_pass<F, Gate, NV, C, A, true, true>,
        forward_pass<F, Gate, NV, C, B, false, false>, forward_pass<F, Gate, NV, C, B, true, false>,
        forward_pass<F, Gate, NV, C, B, false, true>,  forward_pass<F, Gate, NV, C, B, true, true>};
    const int which = reads == 0 ? 0 : reads == C ? 1 : 2;
    return passes[4 * which + int(gated) + 2 * int(has_query)];
  }

  template <int NV> void write_output(int64_t t, int64_t c, int64_t n, Vec<F> (&o)[NV]) const {
    for (int i = 0; i < NV; ++i) o[i] *= F(p.scale);
    store_block<F, NV>(o, n, row_of<IO>(p.o, u, t, 0) + c);
  }

  // A group of steps and the rows they read of the state before them.
  template <int C> struct Group {
    Step step[C];
    int steps, reads;               // 0 when the stretch has ended
    const F* read[C == 1 ? 1 : 3];  // keys, then the query of a token that ends between them
  };

  template <int C> void group(Step s, Group<C>& g) const {
    const Reader<F, IO> key{key_buffer, p.K}, query{query_buffer, p.K};
    for (g.steps = 0; g.steps < C && s.t < to; s = after(s)) {
      g.step[g.steps] = s;
      g.read[g.steps++] = key(row_of<const IO>(p.k, u, s.t, s.j), s.t * p.N + s.j);
    }
    g.reads = g.steps;
    if constexpr (C == 2) {
      if (g.steps == 1) g.read[1] = g.read[0], g.reads = 2;
      if (g.steps == 2 && ends_token(g.step[0])) {
        g.read[2] = query(row_of<const IO>(p.q, u, g.step[0].t, 0), g.step[0].t);
        g.reads = 3;
      }
    }
  }

  // The same behind gates of channels: what is read is decayed, and so is the first key where a
  // gate parts it from the second.
  static constexpr int64_t kGateRows = 6;
  template <int C> struct GatedGroup : Group<C> {
    F* rows;          // kGateRows of its own: two gates, three rows that are read, a key
    const F* gate;    // null where no token begins
    const F* key[C];  // what is written
    F query_key, key_key;
  };

  template <int C> void group(Step s, GatedGroup<C>& g) const {
    group<C>(s, static_cast<Group<C>&>(g));
    g.gate = nullptr;
    for (int c = 0; c < g.steps; ++c) g.key[c] = g.read[c];
    if constexpr (C == 2)
      if (g.reads == 3) g.query_key = dot_rows(g.read[2], g.key[0], p.K);
    const auto row = [&](int i) { return g.rows + i * padded<F>(p.K); };
    if (g.steps > 0 && g.step[0].j == 0) {
      read_decay(gate_row(u, g.step[0].t), p.K, false, row(0));
      g.gate = row(0);
      for (int r = 0; r < g.reads; ++r) {
        multiply_rows(row(0), g.read[r], p.K, row(2 + r));
        g.read[r] = row(2 + r);
      }
    }
    if constexpr (C == 2) {
      if (g.steps < 2) return;
      if (g.step[1].j == 0) {
        read_decay(gate_row(u, g.step[1].t), p.K, false, row(1));
        multiply_rows(row(1), g.read[1], p.K, row(3));
        multiply_rows(row(1), g.key[0], p.K, row(5));
        g.read[1] = row(3), g.key[0] = row(5);
        if (g.gate) multiply_rows(row(1), row(0), p.K, row(1));
        g.gate = row(1);
      }
      g.key_key = dot_rows(g.key[1], g.key[0], p.K);
    }
  }

  // Of a pair: q . k_0 and k_1 . k_0, or k_1 . (a_1 k_0).
  F query_key(const Group<2>& g) const { return dot_rows(g.read[2], g.read[0], p.K); }
  F key_key(const Group<2>& g) const { return dot_rows(g.read[1], g.read[0], p.K); }
  F query_key(const GatedGroup<2>& g) const { return g.query_key; }
  F key_key(const GatedGroup<2>& g) const { return g.key_key; }

  // What step s writes: e = v - x and d = beta e.
  template <int NV>
  [[gnu::always_inline]] void write(Step s, int64_t c, int64_t n, const Vec<F>* x,
                                    Vec<F>* d) const {
    Vec<F> e[NV];
    load_block<F, NV>(row_of<const IO>(p.v, u, s.t, s.j) + c, n, e);
    const F b = beta(s);
    for (int i = 0; i < NV; ++i) {
      e[i] -= x[i];
      d[i] = b * e[i];
    }
    if (p.error) store_block<F, NV>(e, n, error(u, s) + c);
  }

  // The columns [c, c + NV vectors), over the stretch.
  template <int NV, int C, bool kChannels> void block(int64_t c) const {
    const int64_t segment = delta_product_segment(p.N);
    const int64_t n = p.V - c < NV * kLanes<F> ? p.V - c : NV * kLanes<F>;
    const Reader<F, IO> query{query_buffer, p.K};
    constexpr int R = C == 1 ? 1 : 3;
    Vec<F> x[R][NV], d[C][NV], o[NV];
    const ForwardBlock<F, NV> block{{S + c, row, p.K}, d, x, o};
    std::conditional_t<kChannels, GatedGroup<C>, Group<C>> g[2];
    if constexpr (kChannels)
      g[0].rows = gate_buffer, g[1].rows = gate_buffer + kGateRows * padded<F>(p.K);
    int now = 0;
    group<C>({from, 0}, g[now]);
    if (g[now].reads == R)
      read_pass<F, NV, C, R>(block.S, g[now].read, x);
    else
      read_pass<F, NV, C, C>(block.S, g[now].read, x);
    for (; g[now].steps > 0; now = 1 - now) {
      auto &at = g[now], &next = g[1 - now];
      Step last = at.step[0];
      F a = 1;
      bool gated = false;
      prefetch<kChannels>({last.t + kPrefetchTokens, last.j}, c, n);
      if constexpr (!kChannels) {
        a = gate(last), gated = p.log_gate && last.j == 0;
        if (gated)
          for (int r = 0; r < at.reads; ++r)
            for (int i = 0; i < NV; ++i) x[r][i] *= a;
      }
      write<NV>(last, c, n, x[0], d[0]);
      if constexpr (C == 2) {
        if (at.reads == 3) {
          const Vec<F> along = splat<F>(query_key(at));
          for (int i = 0; i < NV; ++i) o[i] = fma<F>(along, d[0][i], x[2][i]);
          write_output<NV>(last.t, c, n, o);
        }
        if (at.steps == 2) {
          last = at.step[1];
          prefetch<kChannels>({last.t + kPrefetchTokens, last.j}, c, n);
          const Vec<F> along = splat<F>(key_key(at));
          for (int i = 0; i < NV; ++i) x[1][i] = fma<F>(along, d[0][i], x[1][i]);
          if constexpr (!kChannels)
            if (p.log_gate && last.j == 0) {
              const F a1 = gate(last);
              for (int i = 0; i < NV; ++i) x[1][i] *= a1, d[0][i] *= a1;
              a *= a1, gated = true;
            }
          write<NV>(last, c, n, x[1], d[1]);
        }
      }
      group<C>(after(last), next);
      const F* const q =
          ends_token(last) ? query(row_of<const IO>(p.q, u, last.t, 0), last.t) : nullptr;
      if constexpr (kChannels) {
        const auto run = at.steps == C ? pass<const F*, NV, C>(at.gate, next.reads, q)
                                       : pass<const F*, NV, 1>(at.gate, 0, q);
        run(block, at.gate, at.key, next.read, q);
      } else {
        const auto run =
            at.steps == C ? pass<F, NV, C>(gated, next.reads, q) : pass<F, NV, 1>(gated, 0, q);
        run(block, a, at.read, next.read, q);
      }
      if (q) write_output<NV>(last.t, c, n, o);
      if (p.states && last.j + 1 == p.N && (last.t + 1) % segment == 0 && last.t + 1 < u.length)
        copy_matrix(S + c, row, p.K, n, kept_state(last.t + 1) + c, p.V);
    }
  }
};

template <class F, class IO> void forward_team(const DeltaProductForward& p, Team team) {
  const FlushDenormals flush;
  const int64_t row = padded<F>(p.V), key = padded<F>(p.K), length = team.units[0].length;
  F *states, *keys, *queries, *gates;
  const auto lay_out = [&](Bump bump) {
    states = bump.take<F>(team.size * p.K * row);
    keys = bump.take<F>(4 * key), queries = bump.take<F>(4 * key);
    gates = bump.take<F>(p.channels ? 2 * ForwardUnit<F, IO>::kGateRows * key : 0);
    return bump.used;
  };
  lay_out({static_cast<char*>(thread_scratch(lay_out({nullptr})))});
  const auto state = [&](int64_t i) { return states + i * p.K * row; };
  const auto at = [&](int64_t i) {
    return (team.units[i].sequence * p.H + team.units[i].head) * p.K * p.V;
  };
  std::memset(states, 0, size_t(team.size * p.K * row) * sizeof(F));
  if (p.state)
    for (int64_t i = 0; i < team.size; ++i)
      copy_matrix(static_cast<const F*>(p.state) + at(i), p.V, p.K, p.V, state(i), row);
  const int64_t stretch = team.size > 1 ? kStretch : length;
  for (int64_t from = 0; from < length; from += stretch)
    for (int64_t i = 0; i < team.size; ++i) {
      const int64_t to = length - from < stretch ? length : from + stretch;
      const bool last = i + 1 == team.size;
      const ForwardUnit<F, IO> unit{.p = p,
                                    .u = team.units[i],
                                    .next = team.units[last ? 0 : i + 1],
                                    .next_from = last ? to : from,
                                    .S = state(i),
                                    .key_buffer = keys,
                                    .query_buffer = queries,
                                    .gate_buffer = gates,
                                    .row = row,
                                    .from = from,
                                    .to = to};
      for_each_block<F>(p.V, [&](int64_t c, auto nv) {
        const bool pairs = in_pairs(p, unit.u);
        if (p.channels)
          pairs ? unit.template block<nv(), 2, true>(c) : unit.template block<nv(), 1, true>(c);
        else
          pairs ? unit.template block<nv(), 2, false>(c) : unit.template block<nv(), 1, false>(c);
      });
    }
  for (int64_t i = 0; i < team.size; ++i)
    copy_matrix(state(i), row, p.K, p.V, static_cast<F*>(p.final_state) + at(i), p.V);
}

}  // namespace

void delta_product_forward(const DeltaProductForward& p, const Parallel& parallel) {
  by_type(p.type,
          [&]<class F, class IO>(F, IO) { run_delta_product(p, parallel, forward_team<F, IO>); });
}

}  // namespace lrnn::kernels::LRNN_ISA
