#include "compile/drift.h"

#include <algorithm>
#include <limits>

#include "compile/compile.h"

namespace lrnn::compile {
namespace {

constexpr double kEver = std::numeric_limits<double>::infinity();

bool has_reflections(const Compiled& c) {
  for (const auto& layer : c.built->network.layers)
    for (const auto& head : layer.heads)
      for (const auto& action : head.actions)
        for (const auto& step : action.steps)
          if (step.beta == 2) return true;
  return false;
}

// The norm of fla's keys has 1e-6 under the root, and SiLU keeps the keys small: each reflection
// shrinks the state by 2e-6 / s, s the squared length of a raw key. A third of the state may go.
double fla_length(const Compiled& c) {
  if (!has_reflections(c)) return kEver;
  constexpr double kSquaredKey = 4 * 0.25 * 0.25, kEps = 1e-6;
  return 0.3 * kSquaredKey / (2 * kEps * double(c.built->network.householders()));
}

}  // namespace

double safe_length(const Compiled& c) {
  double out = c.plan.exactness == automata::Exactness::kExact ? kEver : c.plan.t_safe;
  if (c.options.profile == Profile::kFla) out = std::min(out, fla_length(c));
  return out;
}

}  // namespace lrnn::compile
