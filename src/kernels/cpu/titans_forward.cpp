#include "kernels/cpu/blocks.h"
#include "kernels/cpu/delta_product_scan.h"
#include "kernels/titans.h"

// Forward of one head of one sequence, token by token over blocks of columns: one pass over memory
// and momentum does the update, the read-out and the product with the next key.
namespace lrnn::kernels::LRNN_ISA {
namespace {

// What one token does: its gates, and the rows that a pass reads.
template <class F> struct TitansStep {
  F eta, keep;            // keep = 1 - alpha
  const F *k, *next, *q;  // next: k of the token behind
};

// S <- eta S + k w^T ; M <- keep M + S over a column block of NV vectors; p = M^T next ; o = M^T q.
// Sums are taken in the order of read_pass: a sequence cut in two gives the same bits.
template <class F, int NV, bool kNext, bool kQ>
[[gnu::noinline]] void titans_pass(const StateBlock<F>& memory, F* momentum,
                                   const TitansStep<F>& step, const Vec<F>* write, Vec<F>* p_out,
                                   Vec<F>* o_out) {
  constexpr int W = kLanes<F>, U = kSums<NV>;
  const int64_t row = memory.row, K = memory.K;
  Vec<F> w[NV], read[U][NV] = {}, o[U][NV] = {};
  for (int n = 0; n < NV; ++n) w[n] = write[n];
  const Vec<F> eta = splat<F>(step.eta), keep = splat<F>(step.keep);
  const auto one = [&](int64_t i, int u) __attribute__((always_inline)) {
    F *const M = memory.data + i * row, *const S = momentum + i * row;
    Vec<F> m[NV], s[NV];
    const Vec<F> k = splat<F>(step.k[i]);
    for (int n = 0; n < NV; ++n) {
      s[n] = fma<F>(k, w[n], eta * load(S + n * W));
      m[n] = fma<F>(keep, load(M + n * W), s[n]);
    }
    if constexpr (kNext) {
      const Vec<F> next = splat<F>(step.next[i]);
      for (int n = 0; n < NV; ++n) read[u][n] = fma<F>(next, m[n], read[u][n]);
    }
    if constexpr (kQ) {
      const Vec<F> q = splat<F>(step.q[i]);
      for (int n = 0; n < NV; ++n) o[u][n] = fma<F>(q, m[n], o[u][n]);
    }
    for (int n = 0; n < NV; ++n) store(M + n * W, m[n]), store(S + n * W, s[n]);
  };
  int64_t i = 0;
  for (; i + U <= K; i += U)
    for (int u = 0; u < U; ++u) one(i + u, u);
  for (; i < K; ++i) one(i, 0);
  if constexpr (kNext) gather<F, NV, U>(read, p_out);
  if constexpr (kQ) gather<F, NV, U>(o, o_out);
}

template <class F, class IO> struct TitansForwardUnit {
  const TitansForward& p;
  const Unit& u;
  F *M, *S, *k_buffer, *q_buffer;  // [K,row] each, then four rows for each buffer
  int64_t row;

  TitansForwardUnit(const TitansForward& p_, const Unit& u_, Bump& bump) : p(p_), u(u_) {
    row = padded<F>(p.V);
    const int64_t key = padded<F>(p.K);
    M = bump.take<F>(p.K * row), S = bump.take<F>(p.K * row);
    k_buffer = bump.take<F>(4 * key), q_buffer = bump.take<F>(4 * key);
  }

  F* kept_state(int64_t t) const {
    const int64_t slots = p.T / kTitansChunk;
    const int64_t slot = u.begin / kTitansChunk + t / kTitansChunk - 1;
    return static_cast<F*>(p.states) + ((u.batch * p.H + u.head) * slots + slot) * 2 * p.K * p.V;
  }
  F gate(const void* of, int64_t t) const {
    return static_cast<const F*>(of)[(u.batch * p.T + u.begin + t) * p.H + u.head];
  }

  template <int NV>
  void pass(const StateBlock<F>& memory, F* momentum, const TitansStep<F>& step,
            const Vec<F>* write, Vec<F>* read, Vec<F>* o) const {
    using Pass =
        void (*)(const StateBlock<F>&, F*, const TitansStep<F>&, const Vec<F>*, Vec<F>*, Vec<F>*);
    static constexpr Pass passes[4] = {
        titans_pass<F, NV, false, false>, titans_pass<F, NV, false, true>,
        titans_pass<F, NV, true, false>, titans_pass<F, NV, true, true>};
    passes[2 * int(step.next != nullptr) + int(step.q != nullptr)](memory, momentum, step, write,
                                                                   read, o);
  }

  // What token t needs, for the columns [c, c + n); inlined as in the delta product.
  [[gnu::always_inline]] void prefetch(int64_t t, int64_t c, int64_t n) const {
    prefetch_row(row_of<const IO>(p.k, u, t, 0), p.K);
    prefetch_row(row_of<const IO>(p.v, u, t, 0) + c, n);
    if (!p.q.data) return;
    prefetch_row(row_of<const IO>(p.q, u, t, 0), p.K);
    prefetch_to_write(row_of<IO>(p.o, u, t, 0) + c, n);
  }

  template <int NV> void block(int64_t c) const {
    const int64_t n = p.V - c < NV * kLanes<F> ? p.V - c : NV * kLanes<F>;
    const Reader<F, IO> key{k_buffer, p.K}, query{q_buffer, p.K};
    const auto key_at = [&](int64_t t) -> const F* {
      return t < u.length ? key(row_of<const IO>(p.k, u, t, 0), t) : nullptr;
    };
    const StateBlock<F> memory{M + c, row, p.K};
    Vec<F> v[NV], write[NV], read[NV] = {}, o[NV];
    const F* k = key_at(0);
    read_pass<F, NV, 1, 1>(memory, &k, &read);
    for (int64_t t = 0; t < u.length; ++t) {
      if (t + kPrefetchTokens < u.length) prefetch(t + kPrefetchTokens, c, n);
      const F* const next = key_at(t + 1);
      const F* const q = p.q.data ? query(row_of<const IO>(p.q, u, t, 0), 0) : nullptr;
      load_block<F, NV>(row_of<const IO>(p.v, u, t, 0) + c, n, v);
      const F theta = gate(p.theta, t);
      for (int i = 0; i < NV; ++i) write[i] = theta * (v[i] - read[i]);
      pass<NV>(memory, S + c, {gate(p.eta, t), 1 - gate(p.alpha, t), k, next, q}, write, read, o);
      if (q) {
        for (int i = 0; i < NV; ++i) o[i] *= F(p.scale);
        store_block<F, NV>(o, n, row_of<IO>(p.o, u, t, 0) + c);
      }
      k = next;
      if (p.states && (t + 1) % kTitansChunk == 0 && t + 1 < u.length) {
        copy_matrix(M + c, row, p.K, n, kept_state(t + 1) + c, p.V);
        copy_matrix(S + c, row, p.K, n, kept_state(t + 1) + p.K * p.V + c, p.V);
      }
    }
  }

  // A matrix [K,V] of a state, or zeros.
  void load_state(const void* from, F* to) const {
    std::memset(to, 0, size_t(p.K * row) * sizeof(F));
    if (from)
      copy_matrix(static_cast<const F*>(from) + (u.sequence * p.H + u.head) * p.K * p.V, p.V, p.K,
                  p.V, to, row);
  }
  void store_state(const F* from, void* to) const {
    copy_matrix(from, row, p.K, p.V, static_cast<F*>(to) + (u.sequence * p.H + u.head) * p.K * p.V,
                p.V);
  }

  void run() const {
    load_state(p.state, M), load_state(p.momentum, S);
    if (u.length > 0)
      for_each_block<F>(p.V, [&](int64_t c, auto nv) { this->template block<nv()>(c); });
    store_state(M, p.final_state), store_state(S, p.final_momentum);
  }
};

}  // namespace

void titans_forward(const TitansForward& p, const Parallel& parallel) {
  by_type(p.type, [&]<class F, class IO>(F, IO) {
    run_heads<TitansForwardUnit<F, IO>>(p, p.K * p.V, 4, parallel);
  });
}

}  // namespace lrnn::kernels::LRNN_ISA
