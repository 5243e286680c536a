#pragma once
#include "compile/plan/plan.h"
#include "compile/component.h"
#include "compile/network.h"

namespace lrnn::compile {

// What the model answers with after each letter.
struct Labels {
  std::vector<std::string> names;
  std::vector<int64_t> of_state;
};
// "reject" and "accept", or the names of the states.
Labels labels_of(const automata::Automaton& a, bool recogniser);

// A network with the parts that its certificate looks at.
struct Built {
  Network network;
  std::vector<std::unique_ptr<ComponentNet>> components;  // of plans that have some
};
std::unique_ptr<Built> build(const automata::Plan& plan, const automata::Automaton& a,
                             const Labels& labels);

// The constructions that are no components: they add layers and gates that write `labels`.
void add_definite(Network& net, const automata::DefinitePlan& plan,
                  const std::vector<int64_t>& of_state, const std::vector<int64_t>& labels);
void add_dihedral(Network& net, const automata::DihedralPlan& plan,
                  const std::vector<int64_t>& of_state, const std::vector<int64_t>& labels);

}  // namespace lrnn::compile
