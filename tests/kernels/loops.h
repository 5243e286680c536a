#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "kernels/dispatch.h"

// A kernel straight through its own interface, in every build that this machine can run, against
// loops over its recurrence in double. Gradients are compared with finite differences of the loops.
//
// A problem has its inputs `in` and loss(inputs, outputs or null, final state or null); a run of a
// kernel has what came of them: `out`, `state` and `d`, gradients in the order of the inputs.
namespace lrnn::kernels {

using Values = std::vector<double>;

inline Values draw_values(uint64_t seed, int64_t n, double low, double high) {
  Random random(seed, 0, 0);
  Values x(n);
  for (auto& value : x) value = low + (high - low) * random.uniform();
  return x;
}

template <class F> double off(const std::vector<F>& got, const Values& want) {
  double error = 0, size = 1e-300;
  for (size_t i = 0; i < want.size(); ++i)
    error += (got[i] - want[i]) * (got[i] - want[i]), size += want[i] * want[i];
  return std::sqrt(error / size);
}

template <template <class> class Run, class F, class Problem>
void expect_loops(const Problem& p, double limit) {
  const Run<F> run(p);
  Values out, state;
  p.loss(p.in, &out, &state);
  EXPECT_TRUE(off(run.out, out) <= limit) << "outputs " << off(run.out, out);
  EXPECT_TRUE(off(run.state, state) <= limit) << "state " << off(run.state, state);
  for (size_t i = 0; i < p.in.size(); ++i) {
    if (!p.reads(i)) continue;
    for (uint64_t trial = 0; trial < 2; ++trial) {
      // Along a random direction, which checks every element at once.
      const Values direction = draw_values(50 + trial, int64_t(p.in[i].size()), -1, 1);
      auto plus = p.in, minus = p.in;
      double want = 0;
      for (size_t j = 0; j < direction.size(); ++j) {
        plus[i][j] += 1e-5 * direction[j], minus[i][j] -= 1e-5 * direction[j];
        want += double(run.d[i][j]) * direction[j];
      }
      const double slope = (p.loss(plus) - p.loss(minus)) / 2e-5;
      EXPECT_NEAR(slope, want, (sizeof(F) == 8 ? 1e-6 : 1e-3) * (1 + std::abs(slope)))
          << "input " << i;
    }
  }
}

// limit: of double; float is good to 1e-5.
template <template <class> class Run, class Problem>
void expect_loops_of_every_isa(const std::vector<Problem>& problems, double limit) {
  const Isa best = best_isa();
  for (const auto& p : problems)
    for (const Isa isa : kIsas) {
      if (!has_isa(isa)) continue;
      force_isa(isa);
      SCOPED_TRACE(testing::Message() << name(isa) << " " << p);
      expect_loops<Run, double>(p, limit);
      expect_loops<Run, float>(p, 1e-5);
    }
  force_isa(best);
}

}  // namespace lrnn::kernels
