#include "kernels/cpu/selective_scan_step.h"

// Forward of one group of channels of one sequence, a vector of channels at a time, token by token.
namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class F, class IO> struct ScanForward {
  static constexpr int W = kLanes<F>;
  const SelectiveScanForward& p;
  const Unit& u;
  F *A, *h;  // [N][W]

  ScanForward(const SelectiveScanForward& p_, const Unit& u_, Bump& bump) : p(p_), u(u_) {
    A = bump.take<F>(p.N * W), h = bump.take<F>(p.N * W);
  }

  // h <- Abar h + write B, returning C . h (or nothing of use without C).
  template <bool kNegative, bool kOutput>
  Vec<F> advance(Vec<F> dt, Vec<F> write, const IO* B, const IO* C) const {
    Vec<F> y{};
    for (int64_t n = 0; n < p.N; ++n) {
      const Vec<F> a = transition<F, kNegative>(exp_(dt * load(A + n * W)));
      const Vec<F> next = fma<F>(a, load(h + n * W), write * widen<F>(B[n]));
      store(h + n * W, next);
      if constexpr (kOutput) y = fma<F>(next, splat<F>(widen<F>(C[n])), y);
    }
    return y;
  }

  // What token t needs; inlined as in the delta product.
  [[gnu::always_inline]] void prefetch(int64_t t, int64_t c) const {
    __builtin_prefetch(row_of<const IO>(p.u, u, t, 0) + c);
    __builtin_prefetch(row_of<const IO>(p.delta, u, t, 0) + c);
    prefetch_row(row_of<const IO>(p.B, u, t, 0), p.N);
    if (!p.C.data) return;
    prefetch_row(row_of<const IO>(p.C, u, t, 0), p.N);
    if (p.z.data) __builtin_prefetch(row_of<const IO>(p.z, u, t, 0) + c);
    __builtin_prefetch(row_of<IO>(p.y, u, t, 0) + c, 1);
  }

  template <class Part> void channels(int64_t c, Part part) const {
    const int64_t lanes = lanes_of<F>(part);
    const Vec<F> bias = load_or_zero<F>(p.delta_bias, c, part),
                 skip = load_or_zero<F>(p.skip, c, part);
    gather(static_cast<const F*>(p.A), p.N, c, lanes, A);
    const int64_t at = u.sequence * p.D * p.N;
    if (p.state)
      gather(static_cast<const F*>(p.state) + at, p.N, c, lanes, h);
    else
      std::memset(h, 0, size_t(p.N * W) * sizeof(F));
    const bool output = p.C.data;
    const auto step =
        p.negative
            ? (output ? &ScanForward::advance<true, true> : &ScanForward::advance<true, false>)
            : (output ? &ScanForward::advance<false, true> : &ScanForward::advance<false, false>);
    for (int64_t t = 0; t < u.length; ++t) {
      if (t + kPrefetchTokens < u.length) prefetch(t + kPrefetchTokens, c);
      const Vec<F> in = load(row_of<const IO>(p.u, u, t, 0) + c, part);
      const Vec<F> x = load(row_of<const IO>(p.delta, u, t, 0) + c, part) + bias;
      const Vec<F> dt = p.softplus ? softplus<F>(x) : x;
      const IO* const C = output ? row_of<const IO>(p.C, u, t, 0) : nullptr;
      Vec<F> y = (this->*step)(dt, dt * in, row_of<const IO>(p.B, u, t, 0), C);
      if (output) {
        y = fma<F>(skip, in, y);
        if (p.z.data) y *= silu(load(row_of<const IO>(p.z, u, t, 0) + c, part));
        store(row_of<IO>(p.y, u, t, 0) + c, y, part);
      }
      if (p.states && (t + 1) % kSelectiveScanChunk == 0 && t + 1 < u.length) {
        F* const kept = kept_scan_state<F>(p, u, t + 1) + c;
        for (int64_t n = 0; n < p.N; ++n) store(kept + n * p.D, load(h + n * W), part);
      }
    }
    scatter(h, p.N, c, lanes, static_cast<F*>(p.final_state) + at);
  }

  void run() const {
    for_each_vector<F>(u, p.D, [&](int64_t c, auto part) { channels(c, part); });
  }
};

}  // namespace

void selective_scan_forward(const SelectiveScanForward& p, const Parallel& parallel) {
  by_type(p.type,
          [&]<class F, class IO>(F, IO) { run_selective_scan<ScanForward<F, IO>>(p, parallel); });
}

}  // namespace lrnn::kernels::LRNN_ISA
