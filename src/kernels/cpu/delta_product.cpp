#include "kernels/delta_product.h"

#include "kernels/cpu/delta_product_units.h"
#include "kernels/isa.h"

namespace lrnn::kernels {
namespace {

const DeltaProductUnits& units() {
#if defined(__x86_64__)
  const Isa isa = best_isa();
  if (isa == Isa::kAvx512) return kDeltaProductAvx512;
  if (isa == Isa::kAvx2) return kDeltaProductAvx2;
#endif
  return kDeltaProductBaseline;
}

template <class Problem, class Function>
void run(const Problem& p, Function* unit, const Parallel& parallel) {
  const double work = 3.0 * double(p.B * p.T * p.N * p.H) * double(p.K * p.V + 256);
  run_units(plan_units(p.S, p.H, p.T, p.cu_seqlens), work, parallel,
            [&](const Unit& u) { unit(p, u); });
}

}  // namespace

int64_t delta_product_segment(int64_t N) { return chunk_tokens(N) * kChunksPerSegment; }

void delta_product_forward(const DeltaProductForward& p, const Parallel& parallel) {
  run(p, units().forward[int(p.type)], parallel);
}

void delta_product_backward(const DeltaProductBackward& p, const Parallel& parallel) {
  run(p, units().backward[int(p.type)], parallel);
}

}  // namespace lrnn::kernels
