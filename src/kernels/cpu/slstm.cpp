#include "kernels/slstm.h"

#include "kernels/cpu/slstm_units.h"
#include "kernels/isa.h"

namespace lrnn::kernels {
namespace {

const SlstmUnits& slstm_units() {
#if defined(__x86_64__)
  const Isa isa = best_isa();
  if (isa == Isa::kAvx512) return kSlstmAvx512;
  if (isa == Isa::kAvx2) return kSlstmAvx2;
#endif
  return kSlstmBaseline;
}

template <class Problem, class Function>
void run(const Problem& p, Function* one, const Parallel& parallel) {
  const int64_t groups = slstm_groups(p.S);
  const auto body = [&](int64_t i) {
    const int64_t group = i / p.H;
    one(p, {i % p.H, group, group * p.S / groups, (group + 1) * p.S / groups});
  };
  // Waking a second thread takes some ten microseconds, a few hundred thousand multiply-adds.
  const double work = double(p.B * p.T * p.H) * double(4 * p.D * p.D + 100 * p.D);
  if (work < 3e5 || groups * p.H < 2)
    serial(groups * p.H, body);
  else
    parallel(groups * p.H, body);
}

}  // namespace

int64_t slstm_groups(int64_t S) {
  constexpr int64_t kMost = 32;
  return S < 1 ? 1 : S < kMost ? S : kMost;
}

void slstm_forward(const SlstmForward& p, const Parallel& parallel) {
  run(p, slstm_units().forward[int(p.type)], parallel);
}

void slstm_backward(const SlstmBackward& p, const Parallel& parallel) {
  run(p, slstm_units().backward[int(p.type)], parallel);
}

}  // namespace lrnn::kernels
