#include "kernels/cpu/diagonal_backward.h"
#include "kernels/cpu/diagonal_forward.h"

namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class Problem>
void run_diagonal(const Problem& p, const Parallel& parallel,
                  void (*unit)(const Problem&, const Unit&)) {
  const double work = 3.0 * double(p.B * p.T * p.H) * double(p.K * p.V + 256);
  run_units({p.S, p.H, p.T, p.cu_seqlens, work}, parallel, [&](const Unit& u) { unit(p, u); });
}

}  // namespace

void diagonal_forward(const DiagonalForward& p, const Parallel& parallel) {
  by_type(p.type, [&]<class F, class IO>(F, IO) {
    run_diagonal(p, parallel, diagonal_forward_unit<F, IO>);
  });
}

void diagonal_backward(const DiagonalBackward& p, const Parallel& parallel) {
  by_type(p.type, [&]<class F, class IO>(F, IO) {
    run_diagonal(p, parallel, diagonal_backward_unit<F, IO>);
  });
}

}  // namespace lrnn::kernels::LRNN_ISA
