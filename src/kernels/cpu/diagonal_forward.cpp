#include "kernels/cpu/blocks.h"
#include "kernels/cpu/delta_product_scan.h"
#include "kernels/cpu/functions.h"
#include "kernels/diagonal.h"

namespace lrnn::kernels::LRNN_ISA {
namespace {

// The rows of one token that a pass reads; b = -rate kk.
template <class F> struct DiagonalRows {
  const F *a, *k, *b, *next, *q;  // next: kk of the token behind
};

// S <- a S + k v^T + b p^T over a column block of NV vectors; p = S^T next ; o = S^T q. Sums are
// taken in the order of read_pass: a sequence cut in two gives the same bits.
template <class F, int NV, bool kRank, bool kNext, bool kQ>
[[gnu::noinline]] void diagonal_pass(const StateBlock<F>& state, const DiagonalRows<F>& r,
                                     const Vec<F>* v_in, Vec<F>* p_io, Vec<F>* o_out) {
  constexpr int W = kLanes<F>, U = kSums<NV>;
  F* const S = state.data;
  const int64_t row = state.row, K = state.K;
  Vec<F> v[NV], p[NV] = {}, read[U][NV] = {}, o[U][NV] = {};
  for (int n = 0; n < NV; ++n) {
    v[n] = v_in[n];
    if constexpr (kRank) p[n] = p_io[n];
  }
  // All loads of a row come before its stores, which the compiler cannot tell apart.
  const auto one = [&](int64_t i, int u) __attribute__((always_inline)) {
    F* const at = S + i * row;
    Vec<F> s[NV];
    const Vec<F> a = splat<F>(r.a[i]), k = splat<F>(r.k[i]);
    for (int n = 0; n < NV; ++n) s[n] = fma<F>(k, v[n], a * load(at + n * W));
    if constexpr (kRank) {
      const Vec<F> b = splat<F>(r.b[i]);
      for (int n = 0; n < NV; ++n) s[n] = fma<F>(b, p[n], s[n]);
    }
    if constexpr (kNext) {
      const Vec<F> next = splat<F>(r.next[i]);
      for (int n = 0; n < NV; ++n) read[u][n] = fma<F>(next, s[n], read[u][n]);
    }
    if constexpr (kQ) {
      const Vec<F> q = splat<F>(r.q[i]);
      for (int n = 0; n < NV; ++n) o[u][n] = fma<F>(q, s[n], o[u][n]);
    }
    for (int n = 0; n < NV; ++n) store(at + n * W, s[n]);
  };
  int64_t i = 0;
  for (; i + U <= K; i += U)
    for (int u = 0; u < U; ++u) one(i + u, u);
  for (; i < K; ++i) one(i, 0);
  Vec<F> total[NV];
  if constexpr (kNext) {
    gather<F, NV, U>(read, total);
    for (int n = 0; n < NV; ++n) p_io[n] = total[n];
  }
  if constexpr (kQ) {
    gather<F, NV, U>(o, total);
    for (int n = 0; n < NV; ++n) o_out[n] = total[n];
  }
}

template <class F, class IO> struct DiagonalForwardUnit {
  const DiagonalForward& p;
  const Unit& u;
  F *S, *a, *b, *k_buffer, *q_buffer, *kk_buffer;  // [K,row], then rows; four for each buffer
  int64_t row;

  DiagonalForwardUnit(const DiagonalForward& p_, const Unit& u_, Bump& bump) : p(p_), u(u_) {
    row = padded<F>(p.V);
    const int64_t key = padded<F>(p.K);
    S = bump.take<F>(p.K * row), a = bump.take<F>(key), b = bump.take<F>(key);
    k_buffer = bump.take<F>(4 * key), q_buffer = bump.take<F>(4 * key);
    kk_buffer = bump.take<F>(4 * key);
  }

  F* kept_state(int64_t t) const {
    const int64_t slots = p.T / kDiagonalChunk;
    const int64_t slot = u.begin / kDiagonalChunk + t / kDiagonalChunk - 1;
    return static_cast<F*>(p.states) + ((u.batch * p.H + u.head) * slots + slot) * p.K * p.V;
  }

  template <int NV>
  void pass(const StateBlock<F>& block, const DiagonalRows<F>& r, const Vec<F>* v, Vec<F>* read,
            Vec<F>* o) const {
    using Pass =
        void (*)(const StateBlock<F>&, const DiagonalRows<F>&, const Vec<F>*, Vec<F>*, Vec<F>*);
    static constexpr Pass passes[6] = {
        diagonal_pass<F, NV, false, false, false>, diagonal_pass<F, NV, false, false, true>,
        diagonal_pass<F, NV, true, false, false>,  diagonal_pass<F, NV, true, false, true>,
        diagonal_pass<F, NV, true, true, false>,   diagonal_pass<F, NV, true, true, true>};
    const int rank = p.kk.data ? (r.next ? 2 : 1) : 0;
    passes[2 * rank + int(r.q != nullptr)](block, r, v, read, o);
  }

  // What token t needs, for the columns [c, c + n); inlined as in the delta product.
  [[gnu::always_inline]] void prefetch(int64_t t, int64_t c, int64_t n) const {
    prefetch_row(row_of<const IO>(p.k, u, t, 0), p.K);
    prefetch_row(row_of<const IO>(p.v, u, t, 0) + c, n);
    prefetch_row(row_of<const F>(p.log_decay, u, t, 0), p.K);
    if (p.kk.data) {
      prefetch_row(row_of<const IO>(p.kk, u, t, 0), p.K);
      prefetch_row(row_of<const IO>(p.rate, u, t, 0), p.K);
    }
    if (!p.q.data) return;
    prefetch_row(row_of<const IO>(p.q, u, t, 0), p.K);
    prefetch_to_write(row_of<IO>(p.o, u, t, 0) + c, n);
  }

  template <int NV> void block(int64_t c) const {
    const int64_t n = p.V - c < NV * kLanes<F> ? p.V - c : NV * kLanes<F>;
    const Reader<F, IO> key{k_buffer, p.K}, query{q_buffer, p.K}, direction{kk_buffer, p.K};
    const auto kk_at = [&](int64_t t) -> const F* {
      if (!p.kk.data || t >= u.length) return nullptr;
      return direction(row_of<const IO>(p.kk, u, t, 0), t);
    };
    const StateBlock<F> state{S + c, row, p.K};
    Vec<F> v[NV], read[NV] = {}, o[NV];
    const F* kk = kk_at(0);
    if (kk) read_pass<F, NV, 1, 1>(state, &kk, &read);
    for (int64_t t = 0; t < u.length; ++t) {
      if (t + kPrefetchTokens < u.length) prefetch(t + kPrefetchTokens, c, n);
      read_decay(row_of<const F>(p.log_decay, u, t, 0), p.K, p.negative, a);
      if (kk) {
        const IO* const rate = row_of<const IO>(p.rate, u, t, 0);
        for (int64_t i = 0; i < p.K; ++i) b[i] = -kk[i] * widen<F>(rate[i]);
      }
      const F* const next = kk_at(t + 1);
      const F* const q = p.q.data ? query(row_of<const IO>(p.q, u, t, 0), 0) : nullptr;
      load_block<F, NV>(row_of<const IO>(p.v, u, t, 0) + c, n, v);
      pass<NV>(state, {a, key(row_of<const IO>(p.k, u, t, 0), 0), b, next, q}, v, read, o);
      if (q) {
        for (int i = 0; i < NV; ++i) o[i] *= F(p.scale);
        store_block<F, NV>(o, n, row_of<IO>(p.o, u, t, 0) + c);
      }
      kk = next;
      if (p.states && (t + 1) % kDiagonalChunk == 0 && t + 1 < u.length)
        copy_matrix(S + c, row, p.K, n, kept_state(t + 1) + c, p.V);
    }
  }

  void run() const {
    const int64_t at = (u.sequence * p.H + u.head) * p.K * p.V;
    std::memset(S, 0, size_t(p.K * row) * sizeof(F));
    if (p.state) copy_matrix(static_cast<const F*>(p.state) + at, p.V, p.K, p.V, S, row);
    if (u.length > 0)
      for_each_block<F>(p.V, [&](int64_t c, auto nv) { this->template block<nv()>(c); });
    copy_matrix(S, row, p.K, p.V, static_cast<F*>(p.final_state) + at, p.V);
  }
};

}  // namespace

void diagonal_forward(const DiagonalForward& p, const Parallel& parallel) {
  by_type(p.type, [&]<class F, class IO>(F, IO) {
    run_heads<DiagonalForwardUnit<F, IO>>(p, p.K * p.V, 3, parallel);
  });
}

}  // namespace lrnn::kernels::LRNN_ISA
