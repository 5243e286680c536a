#include "compile/compile.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "compile/scales.h"
#include "model/checkpoint.h"

namespace lrnn::compile {

namespace {

// 2.4 GB of float32: more is a mistake, or for a larger machine than most.
constexpr double kMostParameters = 6e8;

void check_size(const Network& net) {
  const double width = double(net.features.size());
  const double parameters = double(net.layers.size()) * 6 * width * double(net.gates());
  if (parameters > kMostParameters)
    throw Error(cat("the model would have about ", int64_t(parameters / 1e6),
                    " million weights, more than ", int64_t(kMostParameters / 1e6), " million"),
                "automata with fewer states or levels need fewer; `lrnn check` lists the plans");
}

}  // namespace

std::unique_ptr<Compiled> compile(const automata::Subject& subject, const Options& options) {
  auto out = std::make_unique<Compiled>();
  out->subject = subject;
  out->options = options;
  const auto& a = out->subject.automaton;
  const auto cascade = std::make_shared<const Cascade>(a);
  out->properties = automata::classify(a, *cascade);
  const auto plans = compile::plans(a, out->properties, cascade);
  out->plan = compile::choose(plans, options.limits);
  out->labels = labels_of(a, subject.recogniser);
  out->built = build(out->plan, a, out->labels);
  check_size(out->built->network);
  out->weights =
      weights(out->built->network, {options.profile, options.limits.negative, options.gate});
  out->exactness = out->plan.exactness;
  out->t_safe = safe_length(*out);
  if (std::isfinite(out->t_safe)) out->exactness = Exactness::kDrift;
  return out;
}

model::ModelPtr model_of(const Weights& weights) {
  auto model = model::Model::blank(weights.config, weights.vocabulary);
  model::load_into(*model, weights.tensors, "the construction");
  return model;
}

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
  double out = c.plan.exactness == Exactness::kExact ? kEver : c.plan.t_safe;
  if (c.options.profile == Profile::kFla) out = std::min(out, fla_length(c));
  return out;
}

}  // namespace lrnn::compile
