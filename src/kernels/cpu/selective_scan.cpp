#include "kernels/selective_scan.h"

#include "kernels/cpu/selective_scan_units.h"
#include "kernels/isa.h"

namespace lrnn::kernels {
namespace {

const SelectiveScanUnits& units() {
#if defined(__x86_64__)
  const Isa isa = best_isa();
  if (isa == Isa::kAvx512) return kSelectiveScanAvx512;
  if (isa == Isa::kAvx2) return kSelectiveScanAvx2;
#endif
  return kSelectiveScanBaseline;
}

template <class Problem, class Function>
void run(const Problem& p, Function* unit, const Parallel& parallel) {
  // An exponential costs some ten multiply-adds.
  const double work = 10.0 * double(p.batch * p.T * p.D) * double(p.N + 4);
  const int64_t groups = selective_scan_groups(p.D, p.type);
  run_units(plan_units(p.S, groups, p.T, p.cu_seqlens), work, parallel,
            [&](const Unit& u) { unit(p, u); });
}

}  // namespace

int64_t selective_scan_groups(int64_t D, Type type) {
  const int64_t channels = kScanGroupBytes / (type == Type::kFloat64 ? 8 : 4);
  return (D + channels - 1) / channels;
}

void selective_scan_forward(const SelectiveScanForward& p, const Parallel& parallel) {
  run(p, units().forward[int(p.type)], parallel);
}

void selective_scan_backward(const SelectiveScanBackward& p, const Parallel& parallel) {
  run(p, units().backward[int(p.type)], parallel);
}

}  // namespace lrnn::kernels
