#include "kernels/delta_product.h"

#include <algorithm>

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

constexpr int64_t kTeamBytes = 1 << 18;

template <class Problem, class Function>
void run(const Problem& p, Function* function, const Parallel& parallel) {
  const double work = 3.0 * double(p.B * p.T * p.N * p.H) * double(p.K * p.V + 256);
  // As many states as a small second-level cache holds beside what they read.
  const int64_t bytes = p.K * p.V * (p.type == Type::kFloat64 ? 8 : 4);
  const int64_t most = p.T > kStretch ? std::clamp<int64_t>(kTeamBytes / bytes, 1, 8) : 1;
  run_teams(plan_units(p.S, p.H, p.T, p.cu_seqlens), most, work, parallel,
            [&](Team team) { function(p, team); });
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
