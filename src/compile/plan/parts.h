#pragma once
#include <optional>
#include <vector>

#include "compile/plan/plan.h"

// The ways to plan, one file each; plan.cpp puts them in order.
namespace lrnn::automata {

// The automaton as one component, for every useful choice of group heads: the exact one and the one
// with the fewest Householders. None when a group is too large.
std::vector<Component> components_of(const Automaton& a, std::shared_ptr<const Cascade> cascade);

int64_t householders_of(const Component& c);
Exactness exactness_of(const Component& c);
double t_safe_of(const Component& c);

// Quotients on which every letter permutes or resets, that together tell the states apart. Empty
// when there are none, or when one of them is the automaton itself.
std::vector<std::vector<Component>> parallel_components(const Automaton& a);

std::optional<DefinitePlan> definite_plan(const Automaton& a, int64_t k);
std::optional<DihedralPlan> dihedral_plan(const Automaton& a);

}  // namespace lrnn::automata
