#include "kernels/cpu/mlstm_backward.h"
#include "kernels/cpu/mlstm_forward.h"

namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class Problem>
void run_mlstm(const Problem& p, const Parallel& parallel,
               void (*unit)(const Problem&, const Unit&)) {
  const double work = 4.0 * double(p.B * p.T * p.H) * double(p.K * p.V + 256);
  run_units({p.S, p.H, p.T, p.cu_seqlens, work}, parallel, [&](const Unit& u) { unit(p, u); });
}

}  // namespace

void mlstm_forward(const MlstmForward& p, const Parallel& parallel) {
  by_type(p.type,
          [&]<class F, class IO>(F, IO) { run_mlstm(p, parallel, mlstm_forward_unit<F, IO>); });
}

void mlstm_backward(const MlstmBackward& p, const Parallel& parallel) {
  by_type(p.type,
          [&]<class F, class IO>(F, IO) { run_mlstm(p, parallel, mlstm_backward_unit<F, IO>); });
}

}  // namespace lrnn::kernels::LRNN_ISA
