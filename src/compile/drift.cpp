#include "compile/drift.h"

#include <algorithm>
#include <limits>

#include "compile/compile.h"
#include "compile/scales.h"

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

// A third of the state may go.
double fla_length(const Compiled& c) {
  if (!has_reflections(c)) return kEver;
  return 0.3 / (fla_shrinks() * double(c.built->network.householders()));
}

}  // namespace

// By 2 eps / s, s the squared length of a raw key with four entries.
double fla_shrinks() {
  constexpr double kSquaredKey = 4 * kFlaKey * kFlaKey, kEps = 1e-6;
  return 2 * kEps / kSquaredKey;
}

double safe_length(const Compiled& c) {
  double out = c.plan.exactness == automata::Exactness::kExact ? kEver : c.plan.t_safe;
  if (c.options.profile == Profile::kFla) out = std::min(out, fla_length(c));
  return out;
}

}  // namespace lrnn::compile
