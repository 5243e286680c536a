#include <algorithm>

#include "kernels/cuda/titans/titans.cuh"

// The recurrence of kernels/titans.h token after token, memory and momentum in registers; keys and
// values come through shared memory a few tokens at a time.
namespace lrnn::kernels::cuda {
namespace {

template <class R, int kRows, int kColumns>
__global__ void __launch_bounds__(kDiagonalMostThreads)
    forward(const TitansForward p, const DiagonalPlan plan) {
  extern __shared__ __align__(16) unsigned char memory[];
  const int size = plan.lanes * kRows;
  const TitansStage<R> stage(reinterpret_cast<R*>(memory), size, plan.columns);
  const DiagonalPlace<kRows, kColumns> at(p, plan);
  const Span span = span_of(p, at.s);
  const int64_t state_size = p.K * p.V;
  R M[kRows][kColumns] = {}, S[kRows][kColumns] = {};
  load_state(M, p.state, p, at), load_state(S, p.momentum, p, at);
  int64_t slot = first_kept(p, at.s, kDiagonalStage);
  for (int64_t first = 0; first < span.length; first += kDiagonalStage, ++slot) {
    const DiagonalTokens of(span, at.h, first);
    __syncthreads();
    stage.fill(p, of, size, at.v0, plan.columns);
    __syncthreads();
    if (p.states) {
      R* const to = static_cast<R*>(p.states) + (slot * p.H + at.h) * 2 * state_size;
      each_element(p, at,
                   [&](int i, int j, int64_t e) { to[e] = M[i][j], to[state_size + e] = S[i][j]; });
    }
    for (int t = 0; t < of.count; ++t) {
      R k[kRows], q[kRows];
      load_run(stage.k + t * size + at.k0, k);
      titans_step(M, S, k, stage.v + t * plan.columns + at.c0, stage.gates + 3 * t, plan.lanes);
      if (!p.q.data) continue;
      load_run(stage.q + t * size + at.k0, q);
      const int64_t row = row_at(p.o, span.b, span.t0 + first + t, 0, at.h) + at.v0 + at.c0;
      store_output(M, q, p, at, plan.lanes, row);
    }
  }
  store_state(M, p.final_state, p, at), store_state(S, p.final_momentum, p, at);
}

}  // namespace

int64_t titans_groups(const TitansInputs& p) { return groups_of_columns<kTitansColumns>(p); }

void titans_forward(const TitansForward& p, void* stream) {
  const DiagonalLaunch launch{"titans", static_cast<cudaStream_t>(stream)};
  launch.each_tile<kTitansColumns>(
      p, [&]<class R, int kRows, int kColumns>(const DiagonalPlan& plan) {
        const size_t numbers = TitansStage<R>::numbers(plan.lanes * kRows, plan.columns);
        launch.run(forward<R, kRows, kColumns>, sizeof(R) * numbers, plan, p);
      });
}

}  // namespace lrnn::kernels::cuda
