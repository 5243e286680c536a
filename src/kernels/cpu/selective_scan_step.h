#pragma once
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/functions.h"
#include "kernels/selective_scan.h"

// What both directions of the selective scan share: the step size, and one vector of channels.
namespace lrnn::kernels::LRNN_ISA {
namespace {

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
  return from ? load(static_cast<const F*>(from) + c, part) : Vec<F>{};
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
  for (; c + W <= end; c += W) body(c, All{});
  if (c < end) body(c, First{end - c});
}
template <class F> inline int64_t lanes_of(All) { return kLanes<F>; }
template <class F> inline int64_t lanes_of(First part) { return part.n; }

template <class Which, class Problem>
void run_selective_scan(const Problem& p, const Parallel& parallel) {
  // An exponential costs some ten multiply-adds.
  const double work = 10.0 * double(p.batch * p.T * p.D) * double(p.N + 4);
  run_units({p.S, selective_scan_groups(p.D, p.type), p.T, p.cu_seqlens, work}, parallel,
            [&](const Unit& u) { run_on_scratch<Which>(p, u); });
}

}  // namespace
}  // namespace lrnn::kernels::LRNN_ISA
