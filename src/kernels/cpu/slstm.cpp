#include "kernels/cpu/slstm_backward.h"
#include "kernels/cpu/slstm_forward.h"

namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class Problem>
void run_slstm(const Problem& p, const Parallel& parallel,
               void (*group)(const Problem&, const SlstmGroup&)) {
  const int64_t groups = slstm_groups(p.S);
  const double work = double(p.B * p.T * p.H) * double(4 * p.D * p.D + 100 * p.D);
  run_pieces(groups * p.H, work, parallel, [&](int64_t i) {
    const int64_t g = i / p.H;
    group(p, {i % p.H, g, g * p.S / groups, (g + 1) * p.S / groups});
  });
}

}  // namespace

void slstm_forward(const SlstmForward& p, const Parallel& parallel) {
  by_type(p.type,
          [&]<class F, class IO>(F, IO) { run_slstm(p, parallel, slstm_forward_unit<F, IO>); });
}

void slstm_backward(const SlstmBackward& p, const Parallel& parallel) {
  by_type(p.type,
          [&]<class F, class IO>(F, IO) { run_slstm(p, parallel, slstm_backward_unit<F, IO>); });
}

}  // namespace lrnn::kernels::LRNN_ISA
