#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "automata/automaton.h"
#include "compile/plan/plan.h"

// What a component of a plan comes to: layers, Householder factors, how exact it is and for how
// long.
namespace lrnn::compile {
bool Component::has_group(int64_t level) const {
  for (const int64_t c : cascade->classes_of(level))
    if (groups[at(c)]) return true;
  return false;
}

int64_t Component::layers() const {
  if (group_only) return 1;
  int64_t out = cascade->levels();
  for (int64_t d = 1; d <= cascade->levels(); ++d) out += has_group(d);
  return out;
}

int64_t householders_of(const Component& c) {
  int64_t out = 1;
  for (const auto& g : c.groups)
    if (g) out = std::max(out, g->householders);
  return out;
}

Exactness exactness_of(const Component& c) {
  for (const auto& g : c.groups)
    if (g && g->exactness == Exactness::kDrift) return Exactness::kDrift;
  return Exactness::kExact;
}

double t_safe_of(const Component& c) {
  double out = std::numeric_limits<double>::infinity();
  for (const auto& g : c.groups)
    if (g) out = std::min(out, g->t_safe);
  return out;
}

std::vector<Component> components_of(const Automaton& a, std::shared_ptr<const Cascade> cascade) {
  Component frame{a, std::vector<int64_t>(at(a.states)), cascade, {}, false};
  std::iota(frame.block.begin(), frame.block.end(), int64_t{0});
  std::vector<std::vector<GroupPlan>> options;
  // Classes share their groups more often than not, and looking for heads takes a while.
  std::map<std::pair<std::vector<Permutation>, std::vector<Permutation>>, size_t> known;
  for (const auto& c : cascade->classes()) {
    options.emplace_back();
    if (!c.moves_tiles()) continue;
    const auto [found, fresh] =
        known.emplace(std::pair(c.point_generators, c.tile_generators), options.size() - 1);
    options.back() = fresh ? group_plans(c.points, c.point_generators, c.tiles, c.tile_generators)
                           : options[found->second];
    if (options.back().empty()) return {};
  }
  bool permutes = cascade->levels() == 1;
  for (int64_t x = 0; x < a.symbols; ++x) permutes &= cascade->image(0, x) == 0;
  frame.group_only = permutes;

  std::vector<Component> out;
  for (const bool drift : {false, true}) {
    Component c = frame;
    for (const auto& choice : options)
      c.groups.push_back(choice.empty() ? std::nullopt
                                        : std::optional(drift ? choice.back() : choice.front()));
    if (drift && householders_of(c) >= householders_of(out[0])) break;
    out.push_back(std::move(c));
  }
  return out;
}

}  // namespace lrnn::compile
