#include "kernels/diagonal.h"

#include "kernels/cpu/diagonal_units.h"
#include "kernels/isa.h"

namespace lrnn::kernels {
namespace {

const DiagonalUnits& units() {
#if defined(__x86_64__)
  const Isa isa = best_isa();
  if (isa == Isa::kAvx512) return kDiagonalAvx512;
  if (isa == Isa::kAvx2) return kDiagonalAvx2;
#endif
  return kDiagonalBaseline;
}

template <class Problem, class Function>
void run(const Problem& p, Function* unit, const Parallel& parallel) {
  const double work = 3.0 * double(p.B * p.T * p.H) * double(p.K * p.V + 256);
  run_units(plan_units(p.S, p.H, p.T, p.cu_seqlens), work, parallel,
            [&](const Unit& u) { unit(p, u); });
}

}  // namespace

void diagonal_forward(const DiagonalForward& p, const Parallel& parallel) {
  run(p, units().forward[int(p.type)], parallel);
}

void diagonal_backward(const DiagonalBackward& p, const Parallel& parallel) {
  run(p, units().backward[int(p.type)], parallel);
}

}  // namespace lrnn::kernels
