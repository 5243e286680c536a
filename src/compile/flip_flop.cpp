#include "base/error.h"
#include "compile/component.h"

// Flip-flops: one row, overwritten by three quarters. What was there before stays readable until
// the next write, and the level below needs both what is held and what was.
namespace lrnn::compile {

using automata::LevelAction;

void ComponentNet::flip_flop_layer(int64_t d, int64_t at) {
  const auto& cascade = *component_.cascade;
  auto& level = levels_[size_t(d - 1)];
  const bool last = d == cascade.levels();
  Head head;
  head.cols = cascade.most_tiles(d);
  head.query = {1};
  head.one_row = true;
  head.start.assign(size_t(head.cols), 0);
  head.start[size_t(cascade.coordinates(component_.automaton.start)[size_t(d - 1)])] = 1;
  head.value.resize(size_t(head.cols));
  for (size_t y = 0; y < level.xw.size(); ++y) head.value[y].add(level.xw[y]);
  for (const auto& [triple, f] : level.act) {
    const auto action = cascade.action(d, triple);
    if (action.kind != LevelAction::kReset) {
      head.idle.push_back(f);
      continue;
    }
    // Below the last level nobody asks for the value before: it is overwritten whole.
    head.actions.push_back({f, {{{}, last ? 1 : 0.75}}});
    if (!level.goes.contains(action.type)) head.value[size_t(action.target)].add(f);
  }
  head.usual = !head.actions.empty();
  for (int64_t y = 0; y < head.cols; ++y) {
    level.x.push_back(net_.add(cat(name_, " level ", d, " holds ", y), kReadOffset));
    head.to.push_back(level.x.back());
  }
  net_.layer(at).heads.push_back(std::move(head));
}

void ComponentNet::next_level(int64_t d, int64_t at) {
  for (const auto& t : reachable_.triples[size_t(d)])
    levels_[size_t(d)].act[t] =
        net_.add(cat(name_, ", level ", d + 1, ": ",
                     net_.features[size_t(net_.symbols[size_t(t.symbol)])].name, ", set ", t.before,
                     " to ", t.after),
                 0);
  std::vector<int64_t> acts;
  for (const auto& [t, f] : levels_[size_t(d)].act) acts.push_back(f);
  if (!acts.empty()) net_.choose(acts);
  const int64_t family = net_.new_family();
  for (const auto& [t, f] : levels_[size_t(d - 1)].act) next_of(d, at, t, family);
}

void ComponentNet::next_of(int64_t d, int64_t at, const Triple& t, int64_t family) {
  const auto& cascade = *component_.cascade;
  const auto& level = levels_[size_t(d - 1)];
  const auto& next = levels_[size_t(d)].act;
  const auto &before = cascade.sets()[size_t(t.before)], &after = cascade.sets()[size_t(t.after)];
  const auto action = cascade.action(d, t);
  const Form here = feature(level.act.at(t));
  auto& gates = net_.layer(at).gates;

  // `soft`: what the flip-flop holds of y is at least this much; 0: it does not matter. Of what was
  // overwritten a quarter is left.
  const auto emit = [&](const std::vector<Form>& literals, int64_t y, double soft, double margin,
                        int64_t was, int64_t is) {
    const auto to = next.find({was, is, t.symbol});
    if (to == next.end()) return;  // never reached
    Gate gate = all_of(literals, {{to->second, 1}});
    if (soft > 0) {
      gate.sum.add(level.x[size_t(y)]).constant -= 0.5 + soft;
      gate.margin = margin, gate.highest = soft < 0.25 ? 0.25 - soft : 1 - soft;
    }
    gate.family = family, gate.member = level.act.at(t);
    gates.push_back(std::move(gate));
  };

  const bool was_here = before.depth == d, is_here = after.depth == d;
  if (action.kind == LevelAction::kReset) {
    const int64_t is = after.tiles[size_t(action.target)];
    if (!was_here) return emit({here}, 0, 0, 0, t.before, is);
    for (auto& image : images(d, before.type)) {
      image.literal.push_back(here);
      // y was held before the write: between 3/16 and 1/4 of it is left, or it was written again.
      const auto emit_if = [&](const std::vector<Form>& literals, bool again) {
        emit(literals, image.y, again ? 0.875 : 0.125, 1 / 16., before.tiles[size_t(image.r)], is);
      };
      const auto goes = level.goes.find(action.type);
      if (goes == level.goes.end() || before.type == action.type) {
        emit_if(image.literal, (goes == level.goes.end() ? image.y : image.r) == action.target);
        continue;
      }
      // The group of another class says whether y is what was written.
      auto other = image.literal;
      if (image.y < int64_t(goes->second.size())) {
        const int64_t f = goes->second[size_t(image.y)][size_t(action.target)];
        image.literal.push_back(feature(f));
        emit_if(image.literal, true);
        other.push_back(Form{{{f, -1}}, 1});
      }
      emit_if(other, false);
    }
    return;
  }
  if (!was_here && !is_here) return emit({here}, 0, 0, 0, t.before, t.after);
  const bool moved = action.kind == LevelAction::kPermutation;
  const Permutation back = moved ? automata::inverse(action.tiles) : Permutation{};
  for (auto& image : images(d, was_here ? before.type : after.type)) {
    image.literal.push_back(here);
    const int64_t old = moved ? back[size_t(image.r)] : image.r;
    emit(image.literal, image.y, 0.5, 0.25, was_here ? before.tiles[size_t(old)] : t.before,
         is_here ? after.tiles[size_t(image.r)] : t.after);
  }
}

}  // namespace lrnn::compile
