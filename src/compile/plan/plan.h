#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "automata/cascade/cascade.h"
#include "automata/cascade/classify.h"
#include "compile/plan/head.h"

namespace lrnn::compile {

using automata::Automaton;
using automata::Cascade;
using automata::Class;

enum class PlanKind {
  kConstant,  // one state
  kFlipFlop,  // every letter holds or overwrites: one flip-flop layer
  kGroup,     // one layer of group heads, with any representation
  kParallel,  // several of these side by side
  kDefinite,  // the last k letters in one leaky register
  kDihedral,  // two layers of single reflections
  kHolonomy,  // the cascade
};
std::string name_of(PlanKind kind);  // "flip-flop", "group", ...

// One factor of a parallel plan, or the only one: a quotient of the automaton as a cascade.
struct Component {
  Automaton automaton;         // of the blocks
  std::vector<int64_t> block;  // of each state of the whole automaton
  std::shared_ptr<const Cascade> cascade;
  // One per class of the cascade; empty where the group is trivial.
  std::vector<std::optional<GroupPlan>> groups;
  // Whether the coordinate of the only level is g(start) throughout: no flip-flop layer.
  bool group_only = false;

  bool has_group(int64_t level) const;  // then the level takes a group layer before its flip-flop
  int64_t layers() const;
};

// The last `k` letters as digits of one number: x <- leak x + (1 - leak) digit[letter], in one row
// with beta = 1 - leak. Every word of k letters owns an interval, and the intervals are `gap`
// apart.
struct DefinitePlan {
  int64_t k = 0;
  double leak = 0, gap = 0;
  std::vector<double> digit;  // one per symbol
  double start = 0;           // the register before the first letter
  struct Interval {
    double low, high;
    int64_t state;
  };
  std::vector<Interval> intervals;  // by increasing low; neighbours of one state are joined
};

// A group of rotations and reflections of the plane, with one reflection per token. Layer 1 holds
// e, the number of rotations read, modulo 2 (a scalar times -1 or 1); layer 2 holds F^e M(g) start,
// F = diag(1, -1): its step F^e M(x) F^e' is one reflection and follows from x and the new e.
struct DihedralPlan {
  enum Letter { kStay, kRotation, kReflection };
  std::vector<Letter> letters;                    // one per symbol; kStay does nothing
  std::vector<std::array<Householder, 2>> steps;  // [symbol][e after the letter]
  std::array<double, 2> start = {1, 0};
  struct Point {
    int64_t e, state;
    std::array<double, 2> at;
  };
  // All that can be reached; the state is that of the nearest one with the same e.
  std::vector<Point> points;
  double residual = 0, margin = 0;
};

struct Plan {
  PlanKind kind = PlanKind::kHolonomy;
  int64_t layers = 0, householders = 0;
  bool negative = false;  // needs eigenvalues in [-1, 1]
  Exactness exactness = Exactness::kExact;
  double t_safe = 0;    // infinite for exact plans
  std::string summary;  // "2 levels of 4, 3 (permuted by S3) values"

  std::vector<Component> components;     // kFlipFlop, kGroup, kParallel, kHolonomy
  std::optional<DefinitePlan> definite;  // kDefinite
  std::optional<DihedralPlan> dihedral;  // kDihedral

  bool has_levels() const;  // of which `summary` speaks

  // The state whose blocks these are; -1 when there is none. Of plans with components.
  int64_t state_of(const std::vector<int64_t>& blocks) const;
};

struct Limits {
  std::optional<int64_t> householders, layers;
  bool negative = true;  // the range [-1, 1] is allowed
  bool drift = false;    // inexact plans are allowed
  bool fits(const Plan& plan) const;
};

// Every plan worth having: no other one is at least as good in layers, Householders, range and
// exactness. By (layers, Householders), exact before drift. All states of the automaton must be
// reachable.
std::vector<Plan> plans(const Automaton& a, const Class& c, std::shared_ptr<const Cascade> cascade);

// The first one within the limits. When there is none, an error that says the smallest limits that
// would do.
const Plan& choose(const std::vector<Plan>& plans, const Limits& limits);

// What the plan computes: the state after each letter of a word. Integers, but for the registers of
// kDefinite and kDihedral.
std::vector<int64_t> run(const Plan& plan, const Automaton& a, const std::vector<int64_t>& word);

// ------------------------------------------------------------------------------------- the ways
// One file each; plan.cpp puts them in order.

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

}  // namespace lrnn::compile
