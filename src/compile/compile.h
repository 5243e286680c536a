#pragma once
#include "automata/read/source.h"
#include "compile/build.h"
#include "compile/weights.h"

// From an automaton to a model that follows it on words of every length.
namespace lrnn::compile {

struct Options {
  automata::Limits limits;
  Profile profile = Profile::kNative;
  bool gate = false;
};

struct Compiled {
  automata::Subject subject;
  automata::Class properties;
  automata::Plan plan;
  Options options;
  Labels labels;
  std::unique_ptr<Built> built;  // refers to `plan`
  Weights weights;
  automata::Exactness exactness = automata::Exactness::kExact;
  double t_safe = 0;  // tokens; infinite for exact models
};

// The smallest plan within the limits as weights. Throws with the smallest limits that would do.
std::unique_ptr<Compiled> compile(const automata::Subject& subject, const Options& options);

// The model with these weights.
model::ModelPtr model_of(const Weights& weights);

}  // namespace lrnn::compile
