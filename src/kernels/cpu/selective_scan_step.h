#pragma once
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/decay.h"
#include "kernels/selective_scan.h"

// What both directions of the selective scan share: the step size, and one vector of channels.
namespace lrnn::kernels::LRNN_ISA {
namespace {

// log(1 + e^x) = max(x, 0) + log1p(e^-|x|), with log1p(e) = 2 artanh(e / (2 + e)): its series in
// s <= 1/3 is exact to the last place for small e too. Above 20 it is x, as torch has it.
template <class F> inline Vec<F> softplus(Vec<F> x) {
  constexpr int kTerms = sizeof(F) == 4 ? 8 : 17;
  const Vec<F> e = rows::exp_(x < 0 ? x : -x);
  const Vec<F> s = e * rows::reciprocal(2 + e), s2 = s * s;
  Vec<F> series = splat<F>(F(1) / (2 * kTerms + 1));
#pragma GCC unroll 20
  for (int i = kTerms - 1; i >= 0; --i) series = fma<F>(series, s2, splat<F>(F(1) / (2 * i + 1)));
  return x > 20 ? x : (x > 0 ? x : Vec<F>{}) + 2 * s * series;
}
template <class F> inline Vec<F> softplus_slope(Vec<F> x) {
  return x > 20 ? splat<F>(1) : rows::sigmoid(x);
}

template <class F> inline F wide(F x) { return x; }
template <class F> inline F wide(Bf16 x) {
  const uint32_t bits = uint32_t(x.bits) << 16;
  float y;
  std::memcpy(&y, &bits, 4);
  return y;
}

// Columns c .. c + lanes of a matrix [D,N], transposed: [N][W], zeros beyond.
template <class F> void gather(const F* from, int64_t N, int64_t c, int64_t lanes, F* to) {
  constexpr int W = kLanes<F>;
  for (int64_t n = 0; n < N; ++n)
    for (int i = 0; i < W; ++i) to[n * W + i] = i < lanes ? from[(c + i) * N + n] : F(0);
}
template <class F> void scatter(const F* from, int64_t N, int64_t c, int64_t lanes, F* to) {
  constexpr int W = kLanes<F>;
  for (int64_t n = 0; n < N; ++n)
    for (int64_t i = 0; i < lanes; ++i) to[(c + i) * N + n] = from[n * W + i];
}

template <class F, class Part> inline Vec<F> load_or_zero(const void* from, int64_t c, Part part) {
  return from ? rows::load(static_cast<const F*>(from) + c, part) : Vec<F>{};
}

// Where the kept state of a unit begins that enters token t > 0; [N,D].
template <class F, class Problem> F* kept_scan_state(const Problem& p, const Unit& u, int64_t t) {
  const int64_t slots = p.T / kSelectiveScanChunk;
  const int64_t slot = u.begin / kSelectiveScanChunk + t / kSelectiveScanChunk - 1;
  using States = std::conditional_t<std::is_const_v<F>, const void*, void*>;
  return static_cast<F*>(static_cast<States>(p.states)) + (u.batch * slots + slot) * p.N * p.D;
}

// Calls body(first channel, part) for every vector of a unit's channels.
template <class F, class Body> void for_each_vector(const Unit& u, int64_t D, Body body) {
  constexpr int64_t W = kLanes<F>, group = kScanGroupBytes / int64_t(sizeof(F));
  const int64_t begin = u.head * group, end = begin + group < D ? begin + group : D;
  int64_t c = begin;
  for (; c + W <= end; c += W) body(c, rows::All{});
  if (c < end) body(c, rows::First{end - c});
}
template <class F> inline int64_t lanes_of(rows::All) { return kLanes<F>; }
template <class F> inline int64_t lanes_of(rows::First part) { return part.n; }

}  // namespace
}  // namespace lrnn::kernels::LRNN_ISA
