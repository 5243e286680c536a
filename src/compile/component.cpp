#include "compile/component.h"

#include "base/error.h"

namespace lrnn::compile {

using automata::LevelAction;

ComponentNet::ComponentNet(Network& net, const Component& component, const std::string& name)
    : net_(net), component_(component), name_(name), reachable_(component.cascade->reachable()) {
  const auto& cascade = *component.cascade;
  const int64_t levels = cascade.levels();
  levels_.resize(size_t(levels));
  if (levels == 0) {
    alternatives_.push_back({{}, 0});
    return;
  }
  for (int64_t a = 0; a < int64_t(net.symbols.size()); ++a)
    levels_[0].act[{cascade.all_states(), cascade.all_states(), a}] = net.symbols[size_t(a)];
  int64_t at = 0;
  for (int64_t d = 1; d <= levels; ++d) {
    levels_[size_t(d - 1)].group = component.has_group(d);
    if (component.has_group(d)) group_layer(d, at++);
    if (!component.group_only) flip_flop_layer(d, at++);
    levels_[size_t(d - 1)].layer = at - 1;
    if (d < levels) next_level(d, at - 1);
  }
  layers_ = at;
  if (!component.group_only) answers(levels);
}

void ComponentNet::group_layer(int64_t d, int64_t at) {
  const auto& cascade = *component_.cascade;
  auto& level = levels_[size_t(d - 1)];
  for (int64_t y = 0; !component_.group_only && y < cascade.most_tiles(d); ++y)
    level.xw.push_back(net_.add(cat(name_, " level ", d, " writes ", y), 0));
  net_.choose(level.xw);
  for (const int64_t type : cascade.classes_of(d)) {
    const auto& plan = component_.groups[size_t(type)];
    if (!plan) continue;
    std::vector<Turn> turns;
    for (const auto& [triple, feature] : level.act) {
      const auto action = cascade.action(d, triple);
      if (action.kind == LevelAction::kPermutation && action.type == type)
        turns.push_back({feature, plan->group.find(action.points)});
    }
    const auto& g = level.readings
                        .emplace(type, GroupReading(net_, at, *plan, turns,
                                                    cat(name_, " level ", d, " class ", type)))
                        .first->second;
    if (component_.group_only) return group_answers(g);
    write_tables(d, at, g, type);
  }
}

// Where the group takes each tile, and, at a reset, which value the flip-flop must hold so that the
// group takes it to the target.
void ComponentNet::write_tables(int64_t d, int64_t at, const GroupReading& g, int64_t type) {
  const auto& cascade = *component_.cascade;
  auto& level = levels_[size_t(d - 1)];
  const int64_t tiles = cascade.classes()[size_t(type)].tiles;
  std::map<int64_t, Form> resets;  // target -> 1 when this class is reset to it
  for (const auto& [triple, feature] : level.act) {
    const auto action = cascade.action(d, triple);
    if (action.kind == LevelAction::kReset && action.type == type)
      resets[action.target].add(feature);
  }
  auto& goes = level.goes[type];
  auto& gates = net_.layer(at).gates;
  bool by_stairs = true;
  for (int64_t y = 0; y < tiles; ++y) by_stairs &= g.stairs(y).has_value();
  for (int64_t y = 0; y < tiles; ++y) {
    goes.emplace_back();
    for (int64_t r = 0; r < tiles; ++r)
      goes.back().push_back(
          net_.add(cat(name_, " level ", d, " class ", type, " takes ", y, " to ", r), 0));
    net_.choose(goes.back());
  }
  if (!by_stairs) {
    const int64_t family = net_.new_family();
    const auto add = [&](Gate gate, int64_t e) {
      gate.family = family, gate.member = e;
      gates.push_back(std::move(gate));
    };
    for (const int64_t e : g.elements()) {
      Gate gate = all_of({g.holds(e)}, {});
      for (int64_t y = 0; y < tiles; ++y)
        gate.out.emplace_back(goes[size_t(y)][size_t(g.tile(e, y))], 1);
      add(std::move(gate), e);
      for (const auto& [target, reset] : resets)
        for (int64_t y = 0; y < tiles; ++y)
          if (g.tile(e, y) == target)
            add(all_of({g.holds(e), reset}, {{level.xw[size_t(y)], 1}}), e);
    }
    return;
  }
  const int64_t family = net_.new_family();
  for (int64_t y = 0; y < tiles; ++y) {
    const auto s = *g.stairs(y);
    net_.features[size_t(goes[size_t(y)][size_t(s.first)])].initial = 1;
    for (const auto& [target, reset] : resets)
      if (target == s.first) {
        gates.push_back(all_of({reset}, {{level.xw[size_t(y)], 1}}));
        gates.back().family = family, gates.back().member = target;
      }
    int64_t now = s.first;
    for (const auto& [bound, r] : s.bounds) {
      Gate gate{feature(s.feature),
                s.margin,
                {{goes[size_t(y)][size_t(now)], -1}, {goes[size_t(y)][size_t(r)], 1}},
                s.highest - bound};
      gate.sum.constant = -bound;
      gates.push_back(gate);
      // The same step, closed unless the reset is on.
      const double width = s.highest - s.lowest + 1;
      for (const auto& [target, reset] : resets) {
        if (target != now && target != r) continue;
        Gate with = gate;
        with.sum.add(reset, width).constant -= width;
        with.out = {{level.xw[size_t(y)], target == r ? 1 : -1}};
        with.family = family, with.member = target;
        gates.push_back(std::move(with));
      }
      now = r;
    }
  }
}

// One layer: the state is where the group takes the start.
void ComponentNet::group_answers(const GroupReading& g) {
  const auto& cascade = *component_.cascade;
  const int64_t x = cascade.coordinates(component_.automaton.start)[0];
  const auto& tiles = cascade.sets()[size_t(cascade.all_states())].tiles;
  std::map<int64_t, int64_t> alone;  // state -> its only element, -1 when there are several
  for (const int64_t e : g.elements()) {
    const int64_t state = cascade.sets()[size_t(tiles[size_t(g.tile(e, x))])].state;
    const auto [it, fresh] = alone.emplace(state, e);
    if (!fresh) it->second = -1;
    alternatives_.push_back({{g.holds(e)}, state});
  }
  element_.resize(alone.size());
  for (const auto& [state, e] : alone) {
    if (e < 0) return element_.clear();
    element_[size_t(state)] = e;
  }
}

ComponentNet::Likeness ComponentNet::read_likeness() {
  auto& g = levels_[0].readings.begin()->second;
  g.centre(net_);
  Likeness out{{}, g.lead(), g.reach()};
  for (const int64_t e : element_) out.of_state.push_back(g.likeness(e));
  return out;
}

std::vector<ComponentNet::Image> ComponentNet::images(int64_t d, int64_t type) const {
  const auto& level = levels_[size_t(d - 1)];
  const int64_t tiles = component_.cascade->classes()[size_t(type)].tiles;
  const auto goes = level.goes.find(type);
  std::vector<Image> out;
  for (int64_t y = 0; y < tiles; ++y)
    for (int64_t r = 0; r < tiles; ++r)
      if (goes != level.goes.end())
        out.push_back({y, r, {feature(goes->second[size_t(y)][size_t(r)])}});
      else if (y == r)
        out.push_back({y, r, {}});
  return out;
}

// Which set is above the last level, where the group takes what the flip-flop holds: the state.
void ComponentNet::answers(int64_t d) {
  const auto& sets = component_.cascade->sets();
  const auto& level = levels_[size_t(d - 1)];
  std::map<int64_t, Form> above;
  for (const auto& [triple, f] : level.act) above[triple.after].add(f);
  for (const auto& [set, here] : above) {
    if (sets[size_t(set)].depth != d) {
      alternatives_.push_back({{here}, sets[size_t(set)].state});
      continue;
    }
    for (const auto& image : images(d, sets[size_t(set)].type)) {
      auto literals = image.literal;
      literals.push_back(feature(level.x[size_t(image.y)]));
      literals.push_back(here);
      const int64_t tile = sets[size_t(set)].tiles[size_t(image.r)];
      alternatives_.push_back({literals, sets[size_t(tile)].state});
    }
  }
}

}  // namespace lrnn::compile
