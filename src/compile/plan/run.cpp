#include <cmath>

#include "automata/automaton.h"
#include "base/error.h"
#include "compile/plan/plan.h"

// Plans as they will run: what every head holds, and nothing that a head does not hold.
namespace lrnn::compile {
namespace {

// The group of one class, held as the cosets that its heads tell apart.
class HeldGroup {
 public:
  explicit HeldGroup(const GroupPlan& plan) : plan_(plan) {
    for (const auto& h : plan.heads) cosets_.push_back(h.coset[0]);
  }
  void read(const Permutation& points) {
    const int64_t letter = plan_.group.find(points), held = plan_.decode(cosets_);
    const int64_t now = plan_.group.product(held, letter);
    for (size_t h = 0; h < cosets_.size(); ++h) cosets_[h] = plan_.heads[h].coset[at(now)];
  }
  const Permutation& tiles() const { return plan_.tiles[at(plan_.decode(cosets_))]; }

 private:
  const GroupPlan& plan_;
  std::vector<int64_t> cosets_;
};

// One component: x holds what the flip-flops hold, and a coordinate is g(x) with g the group of the
// class of the set above.
class RunningComponent {
 public:
  explicit RunningComponent(const Component& c)
      : c_(c), x_(c.cascade->coordinates(c.automaton.start)) {
    for (const auto& g : c.groups)
      groups_.push_back(g ? std::optional<HeldGroup>(*g) : std::nullopt);
  }

  int64_t step(int64_t symbol) {
    const auto& cascade = *c_.cascade;
    Cascade::Triple t{cascade.all_states(), cascade.all_states(), symbol};
    for (int64_t d = 1; d <= cascade.levels(); ++d) {
      const auto action = cascade.action(d, t);
      const auto &before = cascade.sets()[at(t.before)], &after = cascade.sets()[at(t.after)];
      const int64_t old = before.depth == d ? coordinate(d, before.type) : 0;
      if (action.kind == automata::LevelAction::kPermutation && groups_[at(action.type)])
        groups_[at(action.type)]->read(action.points);
      if (action.kind == automata::LevelAction::kReset)
        x_[at(d - 1)] = before_group(action.type, action.target);
      if (before.depth == d) t.before = before.tiles[at(old)];
      if (after.depth == d) t.after = after.tiles[at(coordinate(d, after.type))];
    }
    return cascade.sets()[at(t.after)].state;
  }

 private:
  int64_t coordinate(int64_t level, int64_t type) const {
    const int64_t x = x_[at(level - 1)];
    return groups_[at(type)] ? groups_[at(type)]->tiles()[at(x)] : x;
  }
  int64_t before_group(int64_t type, int64_t target) const {
    return groups_[at(type)] ? automata::inverse(groups_[at(type)]->tiles())[at(target)] : target;
  }

  const Component& c_;
  Cascade::Coordinates x_;
  std::vector<std::optional<HeldGroup>> groups_;
};

std::vector<int64_t> run_definite(const DefinitePlan& plan, const std::vector<int64_t>& word) {
  std::vector<int64_t> out;
  double x = plan.start;
  for (const int64_t s : word) {
    x = plan.leak * x + (1 - plan.leak) * plan.digit[at(s)];
    int64_t state = -1;
    for (const auto& i : plan.intervals)
      if (x > i.low - plan.gap / 2 && x < i.high + plan.gap / 2) state = i.state;
    out.push_back(state);
  }
  return out;
}

std::vector<int64_t> run_dihedral(const DihedralPlan& plan, const std::vector<int64_t>& word) {
  std::vector<int64_t> out;
  std::array<double, 2> h = plan.start;
  int64_t e = 0;
  for (const int64_t s : word) {
    if (plan.letters[at(s)] == DihedralPlan::kRotation) e = 1 - e;
    if (plan.letters[at(s)] != DihedralPlan::kStay) {
      const auto k = key_of(plan.steps[at(s)][at(e)], 1);
      const double along = 2 * (k[0] * h[0] + k[1] * h[1]);
      h = {h[0] - along * k[0], h[1] - along * k[1]};
    }
    int64_t state = -1;
    double best = -2;
    for (const auto& p : plan.points) {
      const double likeness = p.at[0] * h[0] + p.at[1] * h[1];
      if (p.e == e && likeness > best) best = likeness, state = p.state;
    }
    out.push_back(state);
  }
  return out;
}

}  // namespace

std::vector<int64_t> run(const Plan& plan, const Automaton& a, const std::vector<int64_t>& word) {
  for (const int64_t s : word) check(s >= 0 && s < a.symbols, s, " is not a symbol");
  if (plan.definite) return run_definite(*plan.definite, word);
  if (plan.dihedral) return run_dihedral(*plan.dihedral, word);
  std::vector<RunningComponent> parts;
  for (const auto& c : plan.components) parts.emplace_back(c);
  std::vector<int64_t> out;
  for (const int64_t s : word) {
    std::vector<int64_t> blocks;
    for (auto& p : parts) blocks.push_back(p.step(s));
    out.push_back(plan.state_of(blocks));
  }
  return out;
}

}  // namespace lrnn::compile
