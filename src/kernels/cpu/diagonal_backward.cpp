#include "kernels/cpu/columns.h"
#include "kernels/cpu/functions.h"
#include "kernels/diagonal.h"

// Backward of one head of one sequence, chunk by chunk from the last, W columns of the state at a
// time. With G the gradient of the state, p = S_before^T kk and b = -rate kk, per token:
//
//   G += q do^T                       dq = S_after do            (do holds the scale)
//   dv = G^T k,   dp = G^T b          dk = G v,   db = G p
//   da = rows of G S_before, summed   dkk = S_before dp
//   G <- a G + kk dp^T
namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class F, class IO> struct DiagonalBackwardUnit : ColumnsUnit<F, IO, DiagonalBackward> {
  using Base = ColumnsUnit<F, IO, DiagonalBackward>;
  using Base::W, Base::p, Base::u, Base::Kp, Base::Vp, Base::values;
  F* G;                            // [Vp][Kp]
  F *q, *k, *kk, *b, *a, *slopes;  // [chunk][Kp]
  F *dq, *dk, *dkk, *db, *da;      // [chunk][Kp]
  F* states;                       // of W columns: [chunk + 1][W][Kp]
  F* reads;                        // p: [chunk][W]

  DiagonalBackwardUnit(const DiagonalBackward& p_, const Unit& u_, Bump& bump) : Base(p_, u_) {
    const int64_t chunk = u.length < kDiagonalChunk ? u.length : kDiagonalChunk;
    G = bump.take<F>(Vp * Kp);
    for (F** x : {&q, &k, &kk, &b, &a, &slopes, &dq, &dk, &dkk, &db, &da})
      *x = bump.take<F>(chunk * Kp);
    bump.clear();  // their padding stays zero
    states = bump.take<F>((chunk + 1) * W * Kp), reads = bump.take<F>(chunk * W);
  }

  void load_rows(int64_t t0, int64_t n) const {
    for (int64_t t = 0; t < n; ++t) {
      const int64_t at = t * Kp;
      if (p.q.data) read_row(row_of<const IO>(p.q, u, t0 + t, 0), p.K, q + at);
      read_row(row_of<const IO>(p.k, u, t0 + t, 0), p.K, k + at);
      read_decay(row_of<const F>(p.log_decay, u, t0 + t, 0), p.K, p.negative, a + at, slopes + at);
      if (!p.kk.data) continue;
      read_row(row_of<const IO>(p.kk, u, t0 + t, 0), p.K, kk + at);
      read_row(row_of<const IO>(p.rate, u, t0 + t, 0), p.K, b + at);
      for (int64_t i = at; i < at + p.K; ++i) b[i] *= -kk[i];
    }
    for (F* x : {dq, dk, dkk, db, da}) std::memset(x, 0, size_t(n * Kp) * sizeof(F));
  }

  const F* state_at(int64_t t) const {
    return t == 0 ? this->own(static_cast<const F*>(p.state)) : this->kept(t, kDiagonalChunk, 1);
  }

  // The states of a chunk's W columns, from the first.
  template <bool kRank> void repeat(int64_t t0, int64_t n, int64_t c) const {
    alignas(64) F tile[W * W];
    for (int64_t t = 0; t < n; ++t) {
      const F *const from = states + t * W * Kp, *const a_t = a + t * Kp, *const k_t = k + t * Kp,
                     *const b_t = b + t * Kp, *const kk_t = kk + t * Kp;
      F* const to = states + (t + 1) * W * Kp;
      const Vec<F> v = values(p.v, t0 + t, c);
      Vec<F> read{};
      if constexpr (kRank) {
        for (int j = 0; j < W; ++j) {
          Vec<F> sum{};
          for (int64_t i = 0; i < Kp; i += W)
            sum = fma<F>(load(kk_t + i), load(from + j * Kp + i), sum);
          store(tile + j * W, sum);
        }
        read = lane_sums(tile);
        store(reads + t * W, read);
      }
      for (int j = 0; j < W; ++j)
        for (int64_t i = 0; i < Kp; i += W) {
          Vec<F> s = fma<F>(splat<F>(v[j]), load(k_t + i), load(a_t + i) * load(from + j * Kp + i));
          if constexpr (kRank) s = fma<F>(splat<F>(read[j]), load(b_t + i), s);
          store(to + j * Kp + i, s);
        }
    }
  }

  // Adds what token t reads to G, and returns its sums over keys: dv, and dp in `dread`.
  template <bool kRank, bool kQ>
  Vec<F> sums_over_keys(F* g, int64_t t, Vec<F> d_o, Vec<F>& dread) const {
    alignas(64) F tile[W * W], rank_tile[W * W];
    const F *const q_t = q + t * Kp, *const k_t = k + t * Kp, *const b_t = b + t * Kp;
    for (int j = 0; j < W; ++j) {
      Vec<F> sum{}, rank{};
      for (int64_t i = 0; i < Kp; i += W) {
        Vec<F> x = load(g + j * Kp + i);
        if constexpr (kQ) {
          x = fma<F>(splat<F>(d_o[j]), load(q_t + i), x);
          store(g + j * Kp + i, x);
        }
        sum = fma<F>(x, load(k_t + i), sum);
        if constexpr (kRank) rank = fma<F>(x, load(b_t + i), rank);
      }
      store(tile + j * W, sum);
      if constexpr (kRank) store(rank_tile + j * W, rank);
    }
    if constexpr (kRank) dread = lane_sums(rank_tile);
    return lane_sums(tile);
  }

  // Everything that is summed over values, and G one token further back.
  template <bool kRank, bool kQ>
  void sums_over_values(F* g, int64_t t, Vec<F> v, Vec<F> d_o, Vec<F> read, Vec<F> dread) const {
    const F *const before = states + t * W * Kp, *const after = before + W * Kp;
    for (int64_t i = 0; i < Kp; i += W) {
      const int64_t at = t * Kp + i;
      Vec<F> dq_i = load(dq + at), dk_i = load(dk + at), da_i = load(da + at);
      Vec<F> db_i = load(db + at), dkk_i = load(dkk + at);
      const Vec<F> a_i = load(a + at), kk_i = load(kk + at);
      for (int j = 0; j < W; ++j) {
        const Vec<F> x = load(g + j * Kp + i), s = load(before + j * Kp + i);
        if constexpr (kQ) dq_i = fma<F>(splat<F>(d_o[j]), load(after + j * Kp + i), dq_i);
        dk_i = fma<F>(splat<F>(v[j]), x, dk_i);
        da_i = fma<F>(x, s, da_i);
        Vec<F> back = a_i * x;
        if constexpr (kRank) {
          db_i = fma<F>(splat<F>(read[j]), x, db_i);
          dkk_i = fma<F>(splat<F>(dread[j]), s, dkk_i);
          back = fma<F>(splat<F>(dread[j]), kk_i, back);
        }
        store(g + j * Kp + i, back);
      }
      if constexpr (kQ) store(dq + at, dq_i);
      store(dk + at, dk_i), store(da + at, da_i);
      if constexpr (kRank) store(db + at, db_i), store(dkk + at, dkk_i);
    }
  }

  // While token t goes by: where its gradients will be written, and what the chunk before reads.
  // Inlined as in the delta product.
  [[gnu::always_inline]] void prefetch(int64_t t) const {
    prefetch_to_write(row_of<IO>(p.dk, u, t, 0), p.K);
    prefetch_to_write(row_of<IO>(p.dv, u, t, 0), p.V);
    prefetch_to_write(row_of<F>(p.dlog_decay, u, t, 0), p.K);
    if (p.q.data) prefetch_to_write(row_of<IO>(p.dq, u, t, 0), p.K);
    if (p.kk.data) {
      prefetch_to_write(row_of<IO>(p.dkk, u, t, 0), p.K);
      prefetch_to_write(row_of<IO>(p.drate, u, t, 0), p.K);
    }
    const int64_t ahead = t - kDiagonalChunk;
    if (ahead < 0) return;
    prefetch_row(row_of<const IO>(p.k, u, ahead, 0), p.K);
    prefetch_row(row_of<const IO>(p.v, u, ahead, 0), p.V);
    prefetch_row(row_of<const F>(p.log_decay, u, ahead, 0), p.K);
    if (p.q.data) {
      prefetch_row(row_of<const IO>(p.q, u, ahead, 0), p.K);
      prefetch_row(row_of<const IO>(p.d_o, u, ahead, 0), p.V);
    }
    if (p.kk.data) {
      prefetch_row(row_of<const IO>(p.kk, u, ahead, 0), p.K);
      prefetch_row(row_of<const IO>(p.rate, u, ahead, 0), p.K);
    }
  }

  template <bool kRank, bool kQ> void columns(int64_t t0, int64_t n, int64_t c) const {
    this->load_columns(state_at(t0), c, states);
    repeat<kRank>(t0, n, c);
    F* const g = G + c * Kp;
    for (int64_t t = n - 1; t >= 0; --t) {
      if (c == 0) prefetch(t0 + t);
      const Vec<F> v = values(p.v, t0 + t, c);
      const Vec<F> d_o = kQ ? F(p.scale) * values(p.d_o, t0 + t, c) : Vec<F>{};
      const Vec<F> read = kRank ? load(reads + t * W) : Vec<F>{};
      Vec<F> dread{};
      const Vec<F> dv[1] = {sums_over_keys<kRank, kQ>(g, t, d_o, dread)};
      const int64_t wanted = p.V - c < W ? p.V - c : W;
      store_block<F, 1>(dv, wanted, row_of<IO>(p.dv, u, t0 + t, 0) + c);
      sums_over_values<kRank, kQ>(g, t, v, d_o, read, dread);
    }
  }

  void write_rows(int64_t t0, int64_t n) const {
    for (int64_t t = 0; t < n; ++t) {
      const int64_t at = t * Kp;
      if (p.q.data) write_row(dq + at, p.K, row_of<IO>(p.dq, u, t0 + t, 0));
      write_row(dk + at, p.K, row_of<IO>(p.dk, u, t0 + t, 0));
      for (int64_t i = at; i < at + p.K; ++i) da[i] *= slopes[i];
      write_row(da + at, p.K, row_of<F>(p.dlog_decay, u, t0 + t, 0));
      if (!p.kk.data) continue;
      const IO* const rate = row_of<const IO>(p.rate, u, t0 + t, 0);
      for (int64_t i = 0; i < p.K; ++i) {
        dkk[at + i] -= widen<F>(rate[i]) * db[at + i];
        db[at + i] *= -kk[at + i];
      }
      write_row(dkk + at, p.K, row_of<IO>(p.dkk, u, t0 + t, 0));
      write_row(db + at, p.K, row_of<IO>(p.drate, u, t0 + t, 0));
    }
  }

  void chunk(int64_t t0, int64_t n) const {
    load_rows(t0, n);
    for (int64_t c = 0; c < p.V; c += W) {
      if (p.kk.data) {
        p.q.data ? columns<true, true>(t0, n, c) : columns<true, false>(t0, n, c);
      } else {
        p.q.data ? columns<false, true>(t0, n, c) : columns<false, false>(t0, n, c);
      }
    }
    write_rows(t0, n);
  }

  void run() const {
    this->load_gradient(p.d_final_state, G);
    chunks_from_the_end(u.length, kDiagonalChunk, [&](int64_t t0, int64_t n) { chunk(t0, n); });
    this->store_gradient(G, p.dstate);
  }
};

}  // namespace

void diagonal_backward(const DiagonalBackward& p, const Parallel& parallel) {
  by_type(p.type, [&]<class F, class IO>(F, IO) {
    run_heads<DiagonalBackwardUnit<F, IO>>(p, p.K * p.V, 3, parallel);
  });
}

}  // namespace lrnn::kernels::LRNN_ISA
