#include "kernels/mlstm.h"

#include "kernels/cpu/mlstm_units.h"
#include "kernels/isa.h"

namespace lrnn::kernels {
namespace {

const MlstmUnits& mlstm_units() {
#if defined(__x86_64__)
  const Isa isa = best_isa();
  if (isa == Isa::kAvx512) return kMlstmAvx512;
  if (isa == Isa::kAvx2) return kMlstmAvx2;
#endif
  return kMlstmBaseline;
}

template <class Problem, class Function>
void run(const Problem& p, Function* unit, const Parallel& parallel) {
  const double work = 4.0 * double(p.B * p.T * p.H) * double(p.K * p.V + 256);
  run_units(plan_units(p.S, p.H, p.T, p.cu_seqlens), work, parallel,
            [&](const Unit& u) { unit(p, u); });
}

}  // namespace

void mlstm_forward(const MlstmForward& p, const Parallel& parallel) {
  run(p, mlstm_units().forward[int(p.type)], parallel);
}

void mlstm_backward(const MlstmBackward& p, const Parallel& parallel) {
  run(p, mlstm_units().backward[int(p.type)], parallel);
}

}  // namespace lrnn::kernels
