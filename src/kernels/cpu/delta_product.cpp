#include <algorithm>

#include "kernels/cpu/delta_product_backward.h"
#include "kernels/cpu/delta_product_forward.h"

namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class Problem>
void run_delta_product(const Problem& p, const Parallel& parallel,
                       void (*function)(const Problem&, Team)) {
  constexpr int64_t kTeamBytes = 1 << 18;
  const double work = 3.0 * double(p.B * p.T * p.N * p.H) * double(p.K * p.V + 256);
  // As many states as a small second-level cache holds beside what they read.
  const int64_t bytes = p.K * p.V * (p.type == Type::kFloat64 ? 8 : 4);
  const int64_t most = p.T > kStretch ? std::clamp<int64_t>(kTeamBytes / bytes, 1, 8) : 1;
  run_teams({p.S, p.H, p.T, p.cu_seqlens, work, most}, parallel,
            [&](Team team) { function(p, team); });
}

}  // namespace

void delta_product_forward(const DeltaProductForward& p, const Parallel& parallel) {
  by_type(p.type,
          [&]<class F, class IO>(F, IO) { run_delta_product(p, parallel, forward_team<F, IO>); });
}

void delta_product_backward(const DeltaProductBackward& p, const Parallel& parallel) {
  by_type(p.type,
          [&]<class F, class IO>(F, IO) { run_delta_product(p, parallel, backward_team<F, IO>); });
}

}  // namespace lrnn::kernels::LRNN_ISA
