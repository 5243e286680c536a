#include <algorithm>

#include "kernels/cuda/diagonal/diagonal.cuh"

// The recurrence of kernels/diagonal.h token after token, the state in registers; keys and values
// come through shared memory a few tokens at a time.
namespace lrnn::kernels::cuda {
namespace {

template <class R, int kRows, int kColumns>
__global__ void __launch_bounds__(kDiagonalMostThreads)
    forward(const DiagonalForward p, const DiagonalPlan plan) {
  extern __shared__ __align__(16) unsigned char memory[];
  const int size = plan.lanes * kRows;
  const DiagonalKeys<R> keys(reinterpret_cast<R*>(memory), size);
  R* const values = reinterpret_cast<R*>(memory) + DiagonalKeys<R>::kCount * kDiagonalStage * size;
  const DiagonalPlace<kRows, kColumns> at(p, plan);
  const Span span = span_of(p, at.s);
  const int64_t state_size = p.K * p.V;
  R S[kRows][kColumns] = {};
  load_state(S, p.state, p, at);
  int64_t slot = first_kept(p, at.s, kDiagonalStage);
  for (int64_t first = 0; first < span.length; first += kDiagonalStage, ++slot) {
    const DiagonalTokens of(span, at.h, first);
    __syncthreads();
    keys.fill(p, of, size);
    of.stage(values, p.type, p.v, at.v0, p.V, plan.columns);
    __syncthreads();
    if (p.states) {
      R* const to = static_cast<R*>(p.states) + (slot * p.H + at.h) * state_size;
      each_element(p, at, [&](int i, int j, int64_t e) { to[e] = S[i][j]; });
    }
    for (int t = 0; t < of.count; ++t) {
      diagonal_step(S, keys, t * size + at.k0, values + t * plan.columns + at.c0, p.kk.data,
                    plan.lanes);
      if (!p.q.data) continue;
      R q[kRows];
      load_run(keys.q + t * size + at.k0, q);
      const int64_t row = row_at(p.o, span.b, span.t0 + first + t, 0, at.h) + at.v0 + at.c0;
      store_output(S, q, p, at, plan.lanes, row);
    }
  }
  store_state(S, p.final_state, p, at);
}

}  // namespace

int64_t diagonal_kept(const HeadsInputs& p) { return kept_states(p, kDiagonalStage); }

int64_t diagonal_groups(const DiagonalInputs& p) { return groups_of_columns<kDiagonalColumns>(p); }

void diagonal_forward(const DiagonalForward& p, void* stream) {
  const DiagonalLaunch launch{"diagonal", static_cast<cudaStream_t>(stream)};
  launch.each_tile<kDiagonalColumns>(p, [&]<class R, int kRows, int kColumns>(
                                            const DiagonalPlan& plan) {
    launch.run(forward<R, kRows, kColumns>, sizeof(R) * diagonal_stage(plan, kRows, 1), plan, p);
  });
}

}  // namespace lrnn::kernels::cuda
