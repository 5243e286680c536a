#pragma once
#include <cmath>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/delta_product_scan.h"
#include "kernels/cpu/delta_product_units.h"

namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class F, class IO> struct ForwardUnit {
  const DeltaProductForward& p;
  const Unit& u;
  F* S;           // [K, row]
  F* key_buffer;  // two rows
  F* query_buffer;
  int64_t row;

  F beta(int64_t t, int64_t j) const {
    return static_cast<const F*>(p.beta)[((u.batch * p.T + u.begin + t) * p.N + j) * p.H + u.head];
  }
  F gate(int64_t t) const {
    return std::exp(
        static_cast<const F*>(p.log_gate)[(u.batch * p.T + u.begin + t) * p.H + u.head]);
  }
  F* error(int64_t t, int64_t j) const {
    return static_cast<F*>(p.error) +
           (((u.batch * p.H + u.head) * p.T + u.begin + t) * p.N + j) * p.V;
  }
  F* kept_state(int64_t t) const {
    const int64_t segment = delta_product_segment(p.N), slots = p.T / segment;
    const int64_t slot = u.begin / segment + t / segment - 1;
    return static_cast<F*>(p.states) + ((u.batch * p.H + u.head) * slots + slot) * p.K * p.V;
  }

  template <int NV>
  void pass(F* block, bool gated, F a, const F* k, const Vec<F>* d, const F* next, Vec<F>* x,
            const F* q, Vec<F>* o) const {
    using Pass = void (*)(F*, int64_t, int64_t, F, const F*, const Vec<F>*, const F*, Vec<F>*,
                          const F*, Vec<F>*);
    static constexpr Pass passes[8] = {
        forward_pass<F, NV, false, false, false>, forward_pass<F, NV, true, false, false>,
        forward_pass<F, NV, false, true, false>,  forward_pass<F, NV, true, true, false>,
        forward_pass<F, NV, false, false, true>,  forward_pass<F, NV, true, false, true>,
        forward_pass<F, NV, false, true, true>,   forward_pass<F, NV, true, true, true>};
    passes[int(gated) + 2 * int(next != nullptr) + 4 * int(q != nullptr)](block, row, p.K, a, k, d,
                                                                          next, x, q, o);
  }

  // What token t needs, for the columns [c, c + n). Always inlined: GCC takes a function that only
  // prefetches for one without effect, and drops the call.
  [[gnu::always_inline]] void prefetch(int64_t t, int64_t c, int64_t n) const {
    for (int64_t j = 0; j < p.N; ++j) {
      prefetch_row(row_of<const IO>(p.k, u, t, j), p.K);
      prefetch_row(row_of<const IO>(p.v, u, t, j) + c, n);
      if (p.error) prefetch_to_write(error(t, j) + c, n);
    }
    if (!p.q.data) return;
    prefetch_row(row_of<const IO>(p.q, u, t, 0), p.K);
    prefetch_to_write(row_of<IO>(p.o, u, t, 0) + c, n);
  }

  template <int NV> void block(int64_t c) const {
    const int64_t steps = u.length * p.N, segment = delta_product_segment(p.N);
    const int64_t n = p.V - c < NV * kLanes<F> ? p.V - c : NV * kLanes<F>;
    const Reader<F, IO> key{key_buffer, p.K}, query{query_buffer, p.K};
    const auto key_at = [&](int64_t m) {
      return m < steps ? key(row_of<const IO>(p.k, u, m / p.N, m % p.N), m) : nullptr;
    };
    Vec<F> x[NV], e[NV], d[NV], o[NV];
    const F* k = key_at(0);
    read_pass<F, NV>(S + c, row, p.K, k, x);
    for (int64_t t = 0, m = 0; t < u.length; ++t) {
      const F a = p.log_gate ? gate(t) : F(1);
      if (t + kPrefetchTokens < u.length) prefetch(t + kPrefetchTokens, c, n);
      for (int64_t j = 0; j < p.N; ++j, ++m) {
        const bool gated = p.log_gate && j == 0, last = j == p.N - 1;
        load_block<F, NV>(row_of<const IO>(p.v, u, t, j) + c, n, e);
        const F b = beta(t, j);
        for (int i = 0; i < NV; ++i) {
          if (gated) x[i] *= a;
          e[i] -= x[i];
          d[i] = b * e[i];
        }
        if (p.error) store_block<F, NV>(e, n, error(t, j) + c);
        const F* const next = key_at(m + 1);
        const F* const q = p.q.data && last ? query(row_of<const IO>(p.q, u, t, 0), 0) : nullptr;
        pass<NV>(S + c, gated, a, k, d, next, x, q, o);
        if (q) {
          for (int i = 0; i < NV; ++i) o[i] *= F(p.scale);
          store_block<F, NV>(o, n, row_of<IO>(p.o, u, t, 0) + c);
        }
        k = next;
      }
      if (p.states && (t + 1) % segment == 0 && t + 1 < u.length)
        copy_matrix(S + c, row, p.K, n, kept_state(t + 1) + c, p.V);
    }
  }
};

template <class F, class IO>
ForwardUnit<F, IO> lay_out(const DeltaProductForward& p, const Unit& u, Bump& bump) {
  const int64_t row = padded<F>(p.V), key = padded<F>(p.K);
  return {p, u, bump.take<F>(p.K * row), bump.take<F>(2 * key), bump.take<F>(2 * key), row};
}

template <class F, class IO> void forward_unit(const DeltaProductForward& p, const Unit& u) {
  const FlushDenormals flush;
  Bump count{nullptr};
  lay_out<F, IO>(p, u, count);
  Bump bump{static_cast<char*>(thread_scratch(count.used))};
  const ForwardUnit<F, IO> unit = lay_out<F, IO>(p, u, bump);
  const int64_t at = (u.sequence * p.H + u.head) * p.K * p.V;
  std::memset(unit.S, 0, size_t(p.K * unit.row) * sizeof(F));
  if (p.state) copy_matrix(static_cast<const F*>(p.state) + at, p.V, p.K, p.V, unit.S, unit.row);
  if (u.length > 0)
    for_each_block<F>(p.V, [&](int64_t c, auto nv) { unit.template block<nv()>(c); });
  copy_matrix(unit.S, unit.row, p.K, p.V, static_cast<F*>(p.final_state) + at, p.V);
}

}  // namespace
}  // namespace lrnn::kernels::LRNN_ISA
