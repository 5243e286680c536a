#include "kernels/cpu/selective_scan_step.h"

// Backward of one group of channels of one sequence, chunk by chunk from the last. With G the
// gradient of the state h, E = e^(dt A), Abar = E or 2E - 1 and F its slope, E or 2E:
//
//   G += C dy                                  dC = sum over channels of dy h
//   dA += G F h_before dt                      dB = sum over channels of G dt u
//   ddt = sum_n G (F h_before A + B u)         du = sum_n G dt B + D dy
//   G <- Abar G
namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class F, class IO> struct ScanBackward {
  static constexpr int W = kLanes<F>;
  static constexpr int64_t kVectors = kScanGroupBytes / kVectorBytes;
  const SelectiveScanBackward& p;
  const Unit& u;
  int64_t Np;          // N rounded up to vectors
  F *A, *G, *dA;       // [kVectors][N][W]
  F *dskip, *dbias;    // [kVectors][W]
  F *E, *h;            // of a chunk of one vector: [chunk][N][W], [chunk + 1][N][W]
  F *x, *dt, *in, *y;  // [chunk][W]
  F *dB, *dC;          // [chunk][Np][W], before the sum over lanes

  ScanBackward(const SelectiveScanBackward& p_, const Unit& u_, Bump& bump) : p(p_), u(u_) {
    const int64_t chunk = u.length < kSelectiveScanChunk ? u.length : kSelectiveScanChunk;
    Np = (p.N + W - 1) / W * W;
    const int64_t size = p.N * W;
    A = bump.take<F>(kVectors * size), G = bump.take<F>(kVectors * size);
    dA = bump.take<F>(kVectors * size);
    dskip = bump.take<F>(kVectors * W), dbias = bump.take<F>(kVectors * W);
    E = bump.take<F>(chunk * size), h = bump.take<F>((chunk + 1) * size);
    x = bump.take<F>(chunk * W), dt = bump.take<F>(chunk * W);
    in = bump.take<F>(chunk * W), y = bump.take<F>(chunk * W);
    dB = bump.take<F>(chunk * Np * W), dC = bump.take<F>(chunk * Np * W);
  }

  int64_t token_index(int64_t t) const { return u.batch * p.T + u.begin + t; }
  bool has_dy() const { return p.dy.data; }

  // The states of n tokens from t0 on.
  template <bool kNegative, class Part>
  void repeat(int64_t v, int64_t c, Part part, int64_t t0, int64_t n) const {
    const Vec<F> bias = load_or_zero<F>(p.delta_bias, c, part),
                 skip = load_or_zero<F>(p.skip, c, part);
    if (t0 > 0) {
      const F* const kept = kept_scan_state<const F>(p, u, t0) + c;
      for (int64_t i = 0; i < p.N; ++i) store(h + i * W, load(kept + i * p.D, part));
    } else if (p.state) {
      gather(static_cast<const F*>(p.state) + u.sequence * p.D * p.N, p.N, c, lanes_of<F>(part), h);
    } else {
      std::memset(h, 0, size_t(p.N * W) * sizeof(F));
    }
    const F* const a = A + v * p.N * W;
    for (int64_t t = 0; t < n; ++t) {
      const Vec<F> input = load(row_of<const IO>(p.u, u, t0 + t, 0) + c, part);
      const Vec<F> before = load(row_of<const IO>(p.delta, u, t0 + t, 0) + c, part) + bias;
      const Vec<F> step = p.softplus ? softplus<F>(before) : before, write = step * input;
      const IO* const B = row_of<const IO>(p.B, u, t0 + t, 0);
      const IO* const C = has_dy() ? row_of<const IO>(p.C, u, t0 + t, 0) : B;
      F *const e = E + t * p.N * W, *const from = h + t * p.N * W, *const to = from + p.N * W;
      Vec<F> sum = skip * input;
      for (int64_t i = 0; i < p.N; ++i) {
        const Vec<F> e_i = exp_(step * load(a + i * W));
        const Vec<F> next =
            fma<F>(transition<F, kNegative>(e_i), load(from + i * W), write * widen<F>(B[i]));
        store(e + i * W, e_i), store(to + i * W, next);
        sum = fma<F>(next, splat<F>(widen<F>(C[i])), sum);
      }
      store(x + t * W, before), store(dt + t * W, step);
      store(in + t * W, input), store(y + t * W, sum);
    }
  }

  // dy behind the gate, and the gate's own gradient.
  template <class Part> Vec<F> upstream(int64_t t0, int64_t t, int64_t c, Part part) const {
    Vec<F> dy = load(row_of<const IO>(p.dy, u, t0 + t, 0) + c, part);
    if (!p.z.data) return dy;
    const Vec<F> z = load(row_of<const IO>(p.z, u, t0 + t, 0) + c, part);
    const Vec<F> s = sigmoid(z);
    store(row_of<IO>(p.dz, u, t0 + t, 0) + c, dy * load(y + t * W) * silu_slope(z, s), part);
    return dy * z * s;
  }

  // While token t goes by: where its gradients will be written, and what the chunk before reads.
  // Inlined as in the delta product.
  [[gnu::always_inline]] void prefetch(int64_t t, int64_t c) const {
    __builtin_prefetch(row_of<IO>(p.du, u, t, 0) + c, 1);
    __builtin_prefetch(row_of<IO>(p.ddelta, u, t, 0) + c, 1);
    const int64_t ahead = t - kSelectiveScanChunk;
    if (ahead < 0) return;
    __builtin_prefetch(row_of<const IO>(p.u, u, ahead, 0) + c);
    __builtin_prefetch(row_of<const IO>(p.delta, u, ahead, 0) + c);
    if (!has_dy()) return;
    __builtin_prefetch(row_of<const IO>(p.dy, u, ahead, 0) + c);
    if (p.z.data) __builtin_prefetch(row_of<const IO>(p.z, u, ahead, 0) + c);
  }

  template <bool kNegative, class Part>
  void reverse(int64_t v, int64_t c, Part part, int64_t t0, int64_t n) const {
    const Vec<F> skip = load_or_zero<F>(p.skip, c, part);
    const F* const a = A + v * p.N * W;
    F *const g = G + v * p.N * W, *const da = dA + v * p.N * W;
    Vec<F> dskip_sum = load(dskip + v * W), dbias_sum = load(dbias + v * W);
    for (int64_t t = n - 1; t >= 0; --t) {
      prefetch(t0 + t, c);
      const Vec<F> dy = has_dy() ? upstream(t0, t, c, part) : Vec<F>{};
      const Vec<F> step = load(dt + t * W), input = load(in + t * W);
      const IO* const B = row_of<const IO>(p.B, u, t0 + t, 0);
      const IO* const C = has_dy() ? row_of<const IO>(p.C, u, t0 + t, 0) : B;
      const F *const e = E + t * p.N * W, *const before = h + t * p.N * W,
                     *const after = before + p.N * W;
      F *const db = dB + t * Np * W, *const dc = dC + t * Np * W;
      Vec<F> reads{}, decays{};  // sum_n G B, sum_n G F h A
      for (int64_t i = 0; i < p.N; ++i) {
        const Vec<F> e_i = load(e + i * W);
        const Vec<F> g_i = fma<F>(splat<F>(widen<F>(C[i])), dy, load(g + i * W));
        const Vec<F> moved = g_i * slope<F, kNegative>(e_i) * load(before + i * W);
        store(dc + i * W, fma<F>(dy, load(after + i * W), load(dc + i * W)));
        store(db + i * W, fma<F>(g_i, step * input, load(db + i * W)));
        store(da + i * W, fma<F>(moved, step, load(da + i * W)));
        reads = fma<F>(g_i, splat<F>(widen<F>(B[i])), reads);
        decays = fma<F>(moved, load(a + i * W), decays);
        store(g + i * W, transition<F, kNegative>(e_i) * g_i);
      }
      Vec<F> d_step = fma<F>(input, reads, decays);
      if (p.softplus) d_step *= softplus_slope<F>(load(x + t * W));
      dbias_sum += d_step, dskip_sum = fma<F>(dy, input, dskip_sum);
      store(row_of<IO>(p.ddelta, u, t0 + t, 0) + c, d_step, part);
      store(row_of<IO>(p.du, u, t0 + t, 0) + c, fma<F>(step, reads, skip * dy), part);
    }
    store(dskip + v * W, dskip_sum), store(dbias + v * W, dbias_sum);
  }

  // [n][Np][W] summed over the lanes into rows of N.
  void sum_lanes(const F* parts, int64_t t0, int64_t n, void* to) const {
    for (int64_t t = 0; t < n; ++t) {
      const int64_t groups_at = u.head * p.batch * p.T + token_index(t0 + t);
      F* const out = static_cast<F*>(to) + groups_at * p.N;
      for (int64_t i = 0; i < p.N; i += W) {
        const Vec<F> total = lane_sums(parts + (t * Np + i) * W);
        if (i + W <= p.N)
          store(out + i, total, All{});
        else
          store(out + i, total, First{p.N - i});
      }
    }
  }

  void chunk(int64_t t0, int64_t n) const {
    std::memset(dB, 0, size_t(n * Np * W) * sizeof(F));
    std::memset(dC, 0, size_t(n * Np * W) * sizeof(F));
    int64_t v = 0;
    for_each_vector<F>(u, p.D, [&](int64_t c, auto part) {
      if (p.negative) {
        repeat<true>(v, c, part, t0, n), reverse<true>(v, c, part, t0, n);
      } else {
        repeat<false>(v, c, part, t0, n), reverse<false>(v, c, part, t0, n);
      }
      ++v;
    });
    sum_lanes(dB, t0, n, p.dB);
    if (p.dC) sum_lanes(dC, t0, n, p.dC);
  }

  void begin() const {
    const int64_t size = p.N * W;
    std::memset(G, 0, size_t(kVectors * size) * sizeof(F));
    std::memset(dA, 0, size_t(kVectors * size) * sizeof(F));
    std::memset(dskip, 0, size_t(kVectors * W) * sizeof(F));
    std::memset(dbias, 0, size_t(kVectors * W) * sizeof(F));
    int64_t v = 0;
    for_each_vector<F>(u, p.D, [&](int64_t c, auto part) {
      const int64_t lanes = lanes_of<F>(part);
      gather(static_cast<const F*>(p.A), p.N, c, lanes, A + v * size);
      if (p.d_final_state)
        gather(static_cast<const F*>(p.d_final_state) + u.sequence * p.D * p.N, p.N, c, lanes,
               G + v * size);
      ++v;
    });
  }

  void end() const {
    const int64_t at = u.sequence * p.D, size = p.N * W;
    int64_t v = 0;
    for_each_vector<F>(u, p.D, [&](int64_t c, auto part) {
      const int64_t lanes = lanes_of<F>(part);
      scatter(dA + v * size, p.N, c, lanes, static_cast<F*>(p.dA) + at * p.N);
      if (p.dstate) scatter(G + v * size, p.N, c, lanes, static_cast<F*>(p.dstate) + at * p.N);
      store(static_cast<F*>(p.dskip) + at + c, load(dskip + v * W), part);
      store(static_cast<F*>(p.dbias) + at + c, load(dbias + v * W), part);
      ++v;
    });
  }

  void run() const {
    begin();
    chunks_from_the_end(u.length, kSelectiveScanChunk,
                        [&](int64_t t0, int64_t n) { chunk(t0, n); });
    end();
  }
};

}  // namespace

void selective_scan_backward(const SelectiveScanBackward& p, const Parallel& parallel) {
  by_type(p.type,
          [&]<class F, class IO>(F, IO) { run_selective_scan<ScanBackward<F, IO>>(p, parallel); });
}

}  // namespace lrnn::kernels::LRNN_ISA
