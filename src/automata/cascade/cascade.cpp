#include "automata/cascade/cascade.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "automata/automaton.h"
#include "base/error.h"

namespace lrnn::automata {
namespace {

bool is_inside(const std::vector<uint64_t>& small, const std::vector<uint64_t>& large) {
  for (size_t w = 0; w < small.size(); ++w)
    if (small[w] & ~large[w]) return false;
  return true;
}

bool is_lower(const std::vector<uint64_t>& p, const std::vector<uint64_t>& q) {
  return std::lexicographical_compare(p.rbegin(), p.rend(), q.rbegin(), q.rend());
}

}  // namespace

bool ImageClass::moves_tiles() const {
  return std::any_of(tile_generators.begin(), tile_generators.end(),
                     [](const Permutation& p) { return !std::is_sorted(p.begin(), p.end()); });
}

int64_t Cascade::image(int64_t set, int64_t symbol) const {
  return images_[at(set * automaton_.symbols + symbol)];
}

int64_t Cascade::most_tiles(int64_t level) const {
  int64_t out = 0;
  for (const auto& c : classes_)
    if (c.level == level) out = std::max(out, c.tiles);
  return out;
}

std::vector<int64_t> Cascade::classes_of(int64_t level) const {
  std::vector<int64_t> out;
  for (size_t c = 0; c < classes_.size(); ++c)
    if (classes_[c].level == level) out.push_back(static_cast<int64_t>(c));
  return out;
}

// Several tiles may do; always the same one, so that tables agree between builds.
int64_t Cascade::first_tile_over(int64_t set, const Bits& bits) const {
  const auto& tiles = sets_[at(set)].tiles;
  int64_t best = -1;
  for (size_t i = 0; i < tiles.size(); ++i) {
    const auto& tile = sets_[at(tiles[i])].bits;
    if (!is_inside(bits, tile)) continue;
    if (best < 0 || is_lower(tile, sets_[at(tiles[at(best)])].bits)) best = static_cast<int64_t>(i);
  }
  check(best >= 0, "a cascade was asked for a step that no word makes");
  return best;
}

LevelAction Cascade::action(int64_t level, const Triple& triple) const {
  const auto [found, fresh] = known_.try_emplace({level, triple});
  if (fresh) found->second = compute(level, triple);
  return found->second;
}

LevelAction Cascade::compute(int64_t level, const Triple& triple) const {
  const auto &before = sets_[at(triple.before)], &after = sets_[at(triple.after)];
  LevelAction out;
  if (after.depth != level) return out;
  out.type = after.type;
  const int64_t to = image(triple.before, triple.symbol);
  if (before.depth != level || to != triple.after) {
    out.kind = LevelAction::kReset;
    out.target = first_tile_over(triple.after, sets_[at(to)].bits);
    return out;
  }
  out.kind = LevelAction::kPermutation;
  std::unordered_map<int64_t, int> tile, point;
  for (size_t i = 0; i < after.tiles.size(); ++i) tile[after.tiles[i]] = static_cast<int>(i);
  for (size_t i = 0; i < after.from.size(); ++i) point[after.from[i]] = static_cast<int>(i);
  for (const int64_t t : before.tiles) out.tiles.push_back(tile.at(image(t, triple.symbol)));
  for (const int s : before.from) out.points.push_back(point.at(automaton_.step(s, triple.symbol)));
  return out;
}

Cascade::Coordinates Cascade::coordinates(int64_t state) const {
  Coordinates out;
  Bits single(sets_[0].bits.size(), 0);
  single[at(state) / 64] = uint64_t{1} << (state % 64);
  int64_t set = all_states();
  for (int64_t d = 1; d <= levels_; ++d) {
    const bool here = sets_[at(set)].depth == d;
    out.push_back(here ? first_tile_over(set, single) : 0);
    if (here) set = sets_[at(set)].tiles[at(out.back())];
  }
  return out;
}

int64_t Cascade::state(const Coordinates& c) const {
  int64_t set = all_states();
  for (int64_t d = 1; d <= levels_; ++d)
    if (sets_[at(set)].depth == d) set = sets_[at(set)].tiles.at(at(c[at(d - 1)]));
  return sets_[at(set)].state;
}

Cascade::Coordinates Cascade::step(const Coordinates& c, int64_t symbol,
                                   std::vector<Triple>* triples) const {
  Triple triple{all_states(), all_states(), symbol};
  Coordinates out = c;
  if (triples) *triples = {triple};
  for (int64_t d = 1; d <= levels_; ++d) {
    const auto [found, fresh] = known_.try_emplace({d, triple});
    if (fresh) found->second = compute(d, triple);
    const LevelAction& action = found->second;
    const int64_t old = c[at(d - 1)];
    int64_t& now = out[at(d - 1)];
    if (action.kind == LevelAction::kPermutation) now = action.tiles[at(old)];
    if (action.kind == LevelAction::kReset) now = action.target;
    const auto &before = sets_[at(triple.before)], &after = sets_[at(triple.after)];
    if (before.depth == d) triple.before = before.tiles[at(old)];
    if (after.depth == d) triple.after = after.tiles[at(now)];
    if (triples) triples->push_back(triple);
  }
  return out;
}

Cascade::Coordinates Cascade::without_idle(Coordinates c) const {
  int64_t set = all_states();
  for (int64_t d = 1; d <= levels_; ++d) {
    const auto& p = sets_[at(set)];
    if (p.depth == d)
      set = p.tiles[at(c[at(d - 1)])];
    else
      c[at(d - 1)] = 0;
  }
  return c;
}

Cascade::Reachable Cascade::reachable(int64_t most) const {
  Reachable out;
  std::vector<std::set<Triple>> triples(at(levels_ + 1));
  out.coordinates = {without_idle(coordinates(automaton_.start))};
  std::set<Coordinates> seen = {out.coordinates[0]};
  std::vector<Triple> met;
  for (size_t i = 0; i < out.coordinates.size(); ++i)
    for (int64_t x = 0; x < automaton_.symbols; ++x) {
      auto next = without_idle(step(out.coordinates[i], x, &met));
      for (size_t d = 0; d < met.size(); ++d) triples[d].insert(met[d]);
      if (!seen.insert(next).second) continue;
      check(static_cast<int64_t>(seen.size()) <= most, "the cascade has more than ", most,
            " tuples of coordinates");
      out.coordinates.push_back(std::move(next));
    }
  for (const auto& level : triples) out.triples.emplace_back(level.begin(), level.end());
  return out;
}

bool Cascade::faithful() const {
  for (const auto& c : reachable().coordinates)
    for (int64_t x = 0; x < automaton_.symbols; ++x)
      if (state(step(c, x)) != automaton_.step(state(c), x)) return false;
  return true;
}

}  // namespace lrnn::automata
