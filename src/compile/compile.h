#pragma once
#include "automata/read/source.h"
#include "compile/component.h"
#include "compile/network.h"
#include "compile/plan/plan.h"
#include "compile/weights.h"

// From an automaton to a model that follows it on words of every length.
namespace lrnn::compile {

// What the model answers with after each letter.
struct Labels {
  std::vector<std::string> names;
  std::vector<int64_t> of_state;
};
// "reject" and "accept", or the names of the states.
Labels labels_of(const Automaton& a, bool recogniser);

// A network with the parts that its certificate looks at.
struct Built {
  Network network;
  std::vector<std::unique_ptr<ComponentNet>> components;  // of plans that have some
};
std::unique_ptr<Built> build(const Plan& plan, const Automaton& a, const Labels& labels);

// The constructions that are no components: they add layers and gates that write `labels`.
void add_definite(Network& net, const DefinitePlan& plan, const std::vector<int64_t>& of_state,
                  const std::vector<int64_t>& labels);
void add_dihedral(Network& net, const DihedralPlan& plan, const std::vector<int64_t>& of_state,
                  const std::vector<int64_t>& labels);

struct Options {
  Limits limits;
  Profile profile = Profile::kNative;
  bool gate = false;
};

struct Compiled {
  automata::Subject subject;
  Class properties;
  Plan plan;
  Options options;
  Labels labels;
  std::unique_ptr<Built> built;  // refers to `plan`
  Weights weights;
  Exactness exactness = Exactness::kExact;
  double t_safe = 0;  // tokens; infinite for exact models
};

// The smallest plan within the limits as weights. Throws with the smallest limits that would do.
std::unique_ptr<Compiled> compile(const automata::Subject& subject, const Options& options);

// The model with these weights.
model::ModelPtr model_of(const Weights& weights);

// How many tokens the model is surely right for: infinite when every head is exact, otherwise what
// its inexact keys and their norm leave, with rounding noise taken as random.
double safe_length(const Compiled& compiled);

// By how much one reflection shrinks the state in the profile `fla`, whose keys are small: the norm
// has 1e-6 under the root.
double fla_shrinks();

}  // namespace lrnn::compile
