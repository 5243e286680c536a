#include <cmath>
#include <limits>

#include "kernels/cpu/delta_product_channels.h"
#include "kernels/cpu/delta_product_scan.h"
#include "kernels/cpu/matrix.h"

// Backward of one head of one sequence, or of a team of them, a segment of each in turn. Per chunk
// of n micro-steps (rows i, j; token t(i)), with S the state that enters it, G the gradient of the
// state that leaves it, D_i = beta_i e_i what was written, and Gamma_ij the product of the gates
// between j and i:
//
//   Y_i  = dL / dD_i           the reverse scan, which also carries G to the chunk before
//   X    = lower(do D^T) o Gamma,  E = strictly_lower(Y D^T) o Gamma       (do holds the scale)
//   dq   = X K + gamma do S^T
//   er   = E K + gamma Y S^T                                          what reading cost k_i
//   src  = rho D G^T + X^T Q - E^T (beta K)                           what writing gained k_i
//   dk   = src - beta er,   dv = beta Y,   dbeta_i = Y_i . e_i
//   dlog_gate_t = sum over tokens from t on of  q . dq - beta k . er - k . src,
//                 plus gamma_end <G, S> + sum_i k_i . (rho D G^T)_i
//
// gamma_i is the product of the gates up to i, rho_i of those after it. They are multiplied up and
// never divided, so a gate of 0 is as good as any. With a gate per key channel all of them are rows
// of channels, and scale keys instead of values: delta_product_channels.h.
namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class F, class IO> struct BackwardUnit {
  const DeltaProductBackward& p;
  Unit u;
  int64_t Kp, Vp, Cp;      // K, V and micro-steps per chunk, rounded up to cache lines
  int64_t ldk, ldv, ldc;   // row strides
  F *G, *GT, *ST, *spare;  // [Kp,ldv] of each head [Vp,ldk] kDeltaProductChunks x [Vp,ldk] [Kp,ldv]
  F *q, *k, *bk;           // [tokens,ldk] [steps,ldk] [steps,ldk] (minus beta k)
  F *D, *Dr, *DT;          // [Cp,ldv] [Cp,ldv] (rho D) [Vp,ldc]
  F *oY, *XE, *out, *src;  // do over Y, X over E, dq over er: [tokens + steps, .]; [steps,ldk]
  F *beta, *a, *gamma, *rho, *Gamma;
  ChannelChunk<F> gates = {};  // of key channels
  F* kr;                       // [steps,ldk] (rho k), with those
  size_t padded_bytes;         // of the matrices above, all but ST

  BackwardUnit(const DeltaProductBackward& p_, Team team, Bump& bump) : p(p_), u(team.units[0]) {
    constexpr int64_t line = 64 / int64_t(sizeof(F));
    const auto up = [](int64_t n) { return (n + line - 1) / line * line; };
    const int64_t tokens =
        u.length < delta_product_chunk(p.N) ? u.length : delta_product_chunk(p.N);
    const int64_t steps = tokens * p.N, both = tokens + steps;
    Kp = up(p.K), Vp = up(p.V), Cp = up(steps);
    ldk = padded<F>(p.K), ldv = padded<F>(p.V), ldc = padded<F>(steps);
    G = bump.take<F>(team.size * Kp * ldv), GT = bump.take<F>(Vp * ldk);
    spare = bump.take<F>(Kp * ldv);
    q = bump.take<F>(tokens * ldk), k = bump.take<F>(steps * ldk), bk = bump.take<F>(steps * ldk);
    D = bump.take<F>(Cp * ldv), DT = bump.take<F>(Vp * ldc);
    Dr = gate_of_head() ? bump.take<F>(Cp * ldv) : D;
    oY = bump.take<F>(both * ldv), XE = bump.take<F>(both * ldc), out = bump.take<F>(both * ldk);
    src = bump.take<F>(steps * ldk);
    beta = bump.take<F>(steps), a = bump.take<F>(tokens), gamma = bump.take<F>(tokens);
    rho = bump.take<F>(tokens), Gamma = bump.take<F>(tokens * tokens);
    kr = k;
    if (p.channels) {
      gates.N = p.N, gates.Kp = Kp, gates.row = ldk, gates.row_XE = ldc;
      gates.a = bump.take<F>(tokens * ldk), gates.rho = bump.take<F>(tokens * ldk);
      gates.gamma = bump.take<F>(ldk), gates.tail = bump.take<F>(ldk);
      gates.dlog_gate = bump.take<F>(tokens * ldk);
      gates.between = bump.take<F>(tokens * kLanes<F>);
      gates.has_q = p.q.data, gates.q = q, gates.k = k, gates.bk = bk;
      gates.XE = XE, gates.dq = out, gates.src = src;
      kr = bump.take<F>(steps * ldk);
    }
    padded_bytes = bump.used;
    ST = bump.take<F>(kDeltaProductChunks * Vp * ldk);
  }

  bool gate_of_head() const { return p.log_gate && !p.channels; }
  int64_t token_index(int64_t t) const { return u.batch * p.T + u.begin + t; }
  const F* error(const Unit& of, int64_t t, int64_t j) const {
    return static_cast<const F*>(p.error) +
           (((of.batch * p.H + of.head) * p.T + of.begin + t) * p.N + j) * p.V;
  }

  // The gates of tokens [t0, t0 + n) and their products.
  void load_gates(int64_t t0, int64_t n) const {
    F product = 1;
    for (int64_t t = 0; t < n; ++t) {
      a[t] = std::exp(static_cast<const F*>(p.log_gate)[token_index(t0 + t) * p.H + u.head]);
      gamma[t] = product *= a[t];
    }
    product = 1;
    for (int64_t t = n - 1; t >= 0; --t) {
      rho[t] = product;
      product *= a[t];
    }
    for (int64_t t = 0; t < n; ++t) {
      for (int64_t s = 0; s < t; ++s) Gamma[t * n + s] = Gamma[(t - 1) * n + s] * a[t];
      Gamma[t * n + t] = 1;
    }
  }

  int64_t gate_row(int64_t t) const { return (token_index(t) * p.H + u.head) * p.K; }
  void load_channel_gates(int64_t t0, int64_t n) {
    gates.n = n;
    for (int64_t t = 0; t < n; ++t)
      read_decay(static_cast<const F*>(p.log_gate) + gate_row(t0 + t), p.K, false,
                 gates.a + t * ldk);
    gates.multiply_gates();
  }

  // What the state needs of a chunk: keys and written values.
  void load_writes(int64_t t0, int64_t n) {
    if (p.channels) load_channel_gates(t0, n);
    if (gate_of_head()) load_gates(t0, n);
    for (int64_t i = 0; i < n * p.N; ++i) {
      const int64_t t = t0 + i / p.N, j = i % p.N;
      F *const key = k + i * ldk, *const d = D + i * ldv;
      read_row(row_of<const IO>(p.k, u, t, j), p.K, key);
      const F b = beta[i] =
          static_cast<const F*>(p.beta)[(token_index(t) * p.N + j) * p.H + u.head];
      read_row(error(u, t, j), p.V, d);
      scale_row(b, d, Vp, d);
      if (gate_of_head()) scale_row(rho[i / p.N], d, Vp, Dr + i * ldv);
      if (p.channels) multiply_rows(gates.rho + i / p.N * ldk, key, Kp, kr + i * ldk);
    }
  }

  // S^T after a chunk of n tokens, from S^T before it.
  void advance(const F* before, int64_t n, F* after) const {
    if (p.channels) {
      for (int64_t v = 0; v < Vp; ++v)
        multiply_rows(gates.gamma, before + v * ldk, Kp, after + v * ldk);
    } else {
      const F decay = p.log_gate ? gamma[n - 1] : F(1);
      scale_row(decay, before, Vp * ldk, after);
    }
    product<F>({p.V, Kp, n * p.N}, {Dr, 1, ldv}, {kr, ldk}, {after, ldk}, true);
  }

  // Returns whether there is one: without, it is zero and need not be multiplied.
  bool load_state(int64_t t, F* transposed) const {
    const int64_t segment = delta_product_segment(p.N), slots = p.T / segment;
    const int64_t slot = u.begin / segment + t / segment - 1;
    const F* from = nullptr;
    if (t > 0)
      from =
          static_cast<const F*>(p.states) + ((u.batch * p.H + u.head) * slots + slot) * p.K * p.V;
    else if (p.state)
      from = static_cast<const F*>(p.state) + (u.sequence * p.H + u.head) * p.K * p.V;
    if (!from) {
      std::memset(transposed, 0, size_t(Vp * ldk) * sizeof(F));
      return false;
    }
    copy_matrix(from, p.V, p.K, p.V, spare, ldv);
    transpose(spare, ldv, Kp, Vp, transposed, ldk);
    return true;
  }

  // While token t goes by: where its gradients will be written, what the chunk before reads, and
  // token `ahead`, if there is one, of what the segment that comes next reads first. Inlined as in
  // forward.
  [[gnu::always_inline]] void prefetch(int64_t t, int64_t n, const Unit& next,
                                       int64_t ahead) const {
    for (int64_t j = 0; j < p.N; ++j) {
      prefetch_to_write(row_of<IO>(p.dk, u, t, j), p.K);
      prefetch_to_write(row_of<IO>(p.dv, u, t, j), p.V);
      if (ahead < 0 || ahead >= next.length) continue;
      prefetch_row(row_of<const IO>(p.k, next, ahead, j), p.K);
      prefetch_row(error(next, ahead, j), p.V);
    }
    if (p.channels) {
      prefetch_to_write(static_cast<F*>(p.dlog_gate) + gate_row(t), p.K);
      if (t >= n) prefetch_row(static_cast<const F*>(p.log_gate) + gate_row(t - n), p.K);
    }
    if (!p.q.data) return;
    prefetch_to_write(row_of<IO>(p.dq, u, t, 0), p.K);
    if (t < n) return;
    prefetch_row(row_of<const IO>(p.q, u, t - n, 0), p.K);
    prefetch_row(row_of<const IO>(p.d_o, u, t - n, 0), p.V);
  }

  // Of token t, for a pass.
  F gate_at(int64_t t, F) const { return p.log_gate ? a[t] : F(1); }
  const F* gate_at(int64_t t, const F*) const { return gates.a + t * ldk; }

  // Gate: F, or const F* for one of each key channel.
  template <class Gate, int NV>
  void reverse_block(int64_t c, int64_t t0, int64_t n, const Unit& next, int64_t ahead) const {
    constexpr int W = kLanes<F>;
    const bool has_q = p.q.data, gated = p.log_gate;
    F* const Y = oY + (has_q ? n : 0) * ldv + c;
    int64_t i = n * p.N - 1;
    Vec<F> w[NV], d[NV];
    const ReverseBlock<F> block{{G + c, ldv, p.K}, d, w};
    const auto token = [&](int64_t t) { return q + t * ldk; };
    const auto upstream = [&](int64_t t) { return oY + t * ldv + c; };
    if (has_q)
      reverse_pass<F, Gate, NV, false, false, true, true>(block, nullptr, {}, token(n - 1),
                                                          upstream(n - 1), k + i * ldk);
    else
      reverse_pass<F, Gate, NV, false, false, false, true>(block, nullptr, {}, nullptr, nullptr,
                                                           k + i * ldk);
    using Pass = void (*)(const ReverseBlock<F>&, const F*, Gate, const F*, const F*, const F*);
    const Pass across = gated ? (has_q ? reverse_pass<F, Gate, NV, true, true, true, true>
                                       : reverse_pass<F, Gate, NV, true, true, false, true>)
                              : (has_q ? reverse_pass<F, Gate, NV, true, false, true, true>
                                       : reverse_pass<F, Gate, NV, true, false, false, true>);
    const Pass within = reverse_pass<F, Gate, NV, true, false, false, true>;
    const Pass end = gated ? reverse_pass<F, Gate, NV, true, true, false, false>
                           : reverse_pass<F, Gate, NV, true, false, false, false>;
    for (; i >= 0; --i) {
      for (int v = 0; v < NV; ++v) {
        store(Y + i * ldv + v * W, w[v]);
        d[v] = beta[i] * w[v];
      }
      const int64_t t = i / p.N;
      const Gate decay = gate_at(t, Gate{});
      if (c == 0 && i % p.N == 0) prefetch(t0 + t, n, next, ahead < 0 ? -1 : ahead + t);
      if (i == 0)
        end(block, k, decay, nullptr, nullptr, nullptr);
      else if (i % p.N == 0)
        across(block, k + i * ldk, decay, token(t - 1), upstream(t - 1), k + (i - 1) * ldk);
      else
        within(block, k + i * ldk, {}, nullptr, nullptr, k + (i - 1) * ldk);
    }
  }

  // Cuts X and E to their triangles and applies the gates between row and column.
  void mask(int64_t n) const {
    const int64_t steps = n * p.N, nq = p.q.data ? n : 0;
    for (int64_t r = 0; r < nq + steps; ++r) {
      const int64_t i = r - nq;
      const int64_t t = i < 0 ? r : i / p.N, end = i < 0 ? (r + 1) * p.N : i;
      F* const x = XE + r * ldc;
      if (p.log_gate)
        for (int64_t j = 0; j < end; ++j) x[j] *= Gamma[t * n + j / p.N];
      for (int64_t j = end; j < ldc; ++j) x[j] = 0;
    }
  }

  void write_values(int64_t t0, int64_t n) const {
    const F* const Y = oY + (p.q.data ? n : 0) * ldv;
    F* const dv = spare;
    for (int64_t i = 0; i < n * p.N; ++i) {
      const int64_t t = t0 + i / p.N, j = i % p.N;
      const F *const y = Y + i * ldv, *const e = error(u, t, j);
      F total = 0;
      constexpr int W = kLanes<F>;
      Vec<F> sums{};
      int64_t c = 0;
      for (; c + W <= p.V; c += W) sums += load(y + c) * load(e + c);
      for (; c < p.V; ++c) total += y[c] * e[c];
      total += sum<F>(sums);
      static_cast<F*>(p.dbeta)[(token_index(t) * p.N + j) * p.H + u.head] = total;
      scale_row(beta[i], y, Vp, dv);
      write_row(dv, p.V, row_of<IO>(p.dv, u, t, j));
    }
  }

  // One chunk of n tokens from t0 on, given the state before it and whether that is not zero.
  void chunk(int64_t t0, int64_t n, const F* before, bool has_state, const Unit& next,
             int64_t ahead) {
    const int64_t steps = n * p.N, nq = p.q.data ? n : 0;
    load_writes(t0, n);
    for (int64_t t = 0; t < nq; ++t) {
      read_row(row_of<const IO>(p.q, u, t0 + t, 0), p.K, q + t * ldk);
      F* const d_o = oY + t * ldv;
      read_row(row_of<const IO>(p.d_o, u, t0 + t, 0), p.V, d_o);
      scale_row(F(p.scale), d_o, Vp, d_o);
    }
    transpose(D, ldv, Cp, Vp, DT, ldc);
    transpose(G, ldv, Kp, Vp, GT, ldk);
    product<F>({steps, Kp, p.V}, {Dr, ldv, 1}, {GT, ldk}, {src, ldk}, false);
    F tail = 0;
    if (p.channels) channel_tail(before);
    if (gate_of_head()) {
      for (int64_t v = 0; v < p.V; ++v) tail += dot(GT + v * ldk, before + v * ldk, Kp);
      tail *= gamma[n - 1];
      for (int64_t i = 0; i < steps; ++i) tail += dot(k + i * ldk, src + i * ldk, Kp);
    }
    for_each_block<F>(p.V, [&](int64_t c, auto nv) {
      p.channels ? reverse_block<const F*, nv()>(c, t0, n, next, ahead)
                 : reverse_block<F, nv()>(c, t0, n, next, ahead);
    });
    write_values(t0, n);

    F *const X = XE, *const E = XE + nq * ldc, *const dq = out, *const er = out + nq * ldk;
    product<F>({nq + steps, Cp, p.V}, {oY, ldv, 1}, {DT, ldc}, {XE, ldc}, false);
    if (!p.channels) mask(n);
    if (gate_of_head())
      for (int64_t r = 0; r < nq + steps; ++r)
        scale_row(gamma[r < nq ? r : (r - nq) / p.N], oY + r * ldv, Vp, oY + r * ldv);
    if (has_state)
      product<F>({nq + steps, Kp, p.V}, {oY, ldv, 1}, {before, ldk}, {out, ldk}, false);
    if (p.channels) return channel_gradients(t0, n, has_state);
    product<F>({nq, Kp, steps}, {X, ldc, 1}, {k, ldk}, {dq, ldk}, has_state, Lower{p.N});
    product<F>({steps, Kp, steps}, {E, ldc, 1}, {k, ldk}, {er, ldk}, has_state, Lower{1});
    product<F>({steps, Kp, nq}, {X, 1, ldc}, {q, ldk}, {src, ldk}, true, Upper{p.N});
    for (int64_t i = 0; i < steps; ++i) scale_row(-beta[i], k + i * ldk, Kp, bk + i * ldk);
    product<F>({steps, Kp, steps}, {E, 1, ldc}, {bk, ldk}, {src, ldk}, true, Upper{1});
    if (p.log_gate) write_gates(t0, n, tail);
    write_keys(t0, n);
  }

  // The rows of G S, summed.
  void channel_tail(const F* before) const {
    std::memset(gates.tail, 0, size_t(Kp) * sizeof(F));
    for (int64_t v = 0; v < p.V; ++v)
      for (int64_t c = 0; c < Kp; c += kLanes<F>)
        store(gates.tail + c,
              fma<F>(load(GT + v * ldk + c), load(before + v * ldk + c), load(gates.tail + c)));
  }
  void channel_gradients(int64_t t0, int64_t n, bool has_state) {
    gates.has_state = has_state, gates.er = out + (p.q.data ? n : 0) * ldk;
    for (int64_t i = 0; i < n * p.N; ++i) scale_row(-beta[i], k + i * ldk, Kp, bk + i * ldk);
    gates.gradients();
    for (int64_t t = 0; t < n; ++t)
      write_row(gates.dlog_gate + t * ldk, p.K, static_cast<F*>(p.dlog_gate) + gate_row(t0 + t));
    write_keys(t0, n);
  }

  // The sum is a difference of larger ones, wrong by about an epsilon of them, whatever the gate
  // is. Its value is the gate times <dS,S>: below kForgotten that is less than the error, unless
  // the state before was 65,536 times what was written since.
  static constexpr F kForgotten = std::numeric_limits<F>::epsilon() / 65536;

  void write_gates(int64_t t0, int64_t n, F tail) const {
    const int64_t nq = p.q.data ? n : 0;
    const F* const er = out + nq * ldk;
    F total = tail;
    for (int64_t t = n - 1; t >= 0; --t) {
      if (nq) total += dot(q + t * ldk, out + t * ldk, Kp);
      for (int64_t i = t * p.N; i < (t + 1) * p.N; ++i)
        total += dot(bk + i * ldk, er + i * ldk, Kp) - dot(k + i * ldk, src + i * ldk, Kp);
      static_cast<F*>(p.dlog_gate)[token_index(t0 + t) * p.H + u.head] =
          a[t] < kForgotten ? F(0) : total;
    }
  }

  void write_keys(int64_t t0, int64_t n) const {
    const int64_t nq = p.q.data ? n : 0;
    for (int64_t t = 0; t < nq; ++t) write_row(out + t * ldk, p.K, row_of<IO>(p.dq, u, t0 + t, 0));
    for (int64_t i = 0; i < n * p.N; ++i) {
      F *const dk = src + i * ldk, *const er = out + (nq + i) * ldk;
      for (int64_t c = 0; c < Kp; c += kLanes<F>)
        store(dk + c, load(dk + c) - beta[i] * load(er + c));
      write_row(dk, p.K, row_of<IO>(p.dk, u, t0 + i / p.N, i % p.N));
    }
  }

  // The segment of `next` that begins at next_begin will be the next one.
  void segment(int64_t begin, int64_t end, const Unit& next, int64_t next_begin) {
    const int64_t step = delta_product_chunk(p.N), chunks = (end - begin + step - 1) / step;
    const bool has_state = load_state(begin, ST);
    for (int64_t c = 0; c + 1 < chunks; ++c) {
      load_writes(begin + c * step, step);
      advance(ST + c * Vp * ldk, step, ST + (c + 1) * Vp * ldk);
    }
    for (int64_t c = chunks - 1; c >= 0; --c) {
      const int64_t t = begin + c * step, left = end - t;
      // It begins with its first chunk.
      const int64_t ahead = next_begin < 0 ? -1 : next_begin + (chunks - 1 - c) * step;
      chunk(t, left < step ? left : step, ST + c * Vp * ldk, c > 0 || has_state, next, ahead);
    }
  }
};

template <class F, class IO> void backward_team(const DeltaProductBackward& p, Team team) {
  const FlushDenormals flush;
  Bump count{nullptr};
  BackwardUnit<F, IO>(p, team, count);
  void* const scratch = thread_scratch(count.used);
  Bump bump{static_cast<char*>(scratch)};
  BackwardUnit<F, IO> unit(p, team, bump);
  const auto G = [first = unit.G, size = unit.Kp * unit.ldv](int64_t i) {
    return first + i * size;
  };
  // The padding of every matrix is zero from here on; without padding, G alone needs it.
  const bool padding = unit.Kp != p.K || unit.Vp != p.V;
  if (padding)
    std::memset(scratch, 0, unit.padded_bytes);
  else if (!p.d_final_state)
    std::memset(G(0), 0, size_t(team.size * unit.Kp * unit.ldv) * sizeof(F));
  const auto at = [&](int64_t i) {
    return (team.units[i].sequence * p.H + team.units[i].head) * p.K * p.V;
  };
  if (p.d_final_state)
    for (int64_t i = 0; i < team.size; ++i)
      copy_matrix(static_cast<const F*>(p.d_final_state) + at(i), p.V, p.K, p.V, G(i), unit.ldv);
  const int64_t segment = delta_product_segment(p.N);
  for (int64_t end = unit.u.length; end > 0;) {
    const int64_t begin = (end - 1) / segment * segment;
    for (int64_t i = 0; i < team.size; ++i) {
      const bool last = i + 1 == team.size;
      unit.u = team.units[i], unit.G = G(i);
      unit.segment(begin, end, team.units[last ? 0 : i + 1], last ? begin - segment : begin);
    }
    end = begin;
  }
  if (p.dstate)
    for (int64_t i = 0; i < team.size; ++i)
      copy_matrix(G(i), unit.ldv, p.K, p.V, static_cast<F*>(p.dstate) + at(i), p.V);
}

}  // namespace

void delta_product_backward(const DeltaProductBackward& p, const Parallel& parallel) {
  by_type(p.type,
          [&]<class F, class IO>(F, IO) { run_delta_product(p, parallel, backward_team<F, IO>); });
}

}  // namespace lrnn::kernels::LRNN_ISA
