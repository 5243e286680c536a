#include "kernels/cpu/selective_scan_backward.h"
#include "kernels/cpu/selective_scan_forward.h"

namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class Problem>
void run_selective_scan(const Problem& p, const Parallel& parallel,
                        void (*unit)(const Problem&, const Unit&)) {
  // An exponential costs some ten multiply-adds.
  const double work = 10.0 * double(p.batch * p.T * p.D) * double(p.N + 4);
  run_units({p.S, selective_scan_groups(p.D, p.type), p.T, p.cu_seqlens, work}, parallel,
            [&](const Unit& u) { unit(p, u); });
}

}  // namespace

void selective_scan_forward(const SelectiveScanForward& p, const Parallel& parallel) {
  by_type(p.type,
          [&]<class F, class IO>(F, IO) { run_selective_scan(p, parallel, scan_forward<F, IO>); });
}

void selective_scan_backward(const SelectiveScanBackward& p, const Parallel& parallel) {
  by_type(p.type,
          [&]<class F, class IO>(F, IO) { run_selective_scan(p, parallel, scan_backward<F, IO>); });
}

}  // namespace lrnn::kernels::LRNN_ISA
