#include "automata/cascade/classify.h"

#include <algorithm>
#include <set>

#include "automata/algebra/permutation_group.h"
#include "automata/automaton.h"
#include "base/error.h"

namespace lrnn::automata {
namespace {

constexpr int64_t kCounted = 20000;         // elements of a monoid that is counted
constexpr int64_t kCountedWork = 30000000;  // times states and symbols

void letters_into(const Automaton& a, Class& out) {
  out.group = out.permutation_reset = out.identity_reset = true;
  for (int64_t x = 0; x < a.symbols; ++x) {
    const auto f = a.letter(x);
    const auto image = static_cast<int64_t>(std::set<int>(f.begin(), f.end()).size());
    const bool permutes = image == a.states, resets = image == 1;
    out.group &= permutes;
    out.permutation_reset &= permutes || resets;
    out.identity_reset &= resets || (permutes && std::is_sorted(f.begin(), f.end()));
    out.letter_periods.push_back(period(f));
  }
}

void groups_into(const Cascade& cascade, Class& out) {
  std::set<int64_t> primes;
  int64_t length = 0;
  bool solvable = true;
  for (const auto& c : cascade.classes()) {
    if (c.point_generators.empty()) continue;
    // The points, not the tiles: the action on the tiles may be a proper quotient.
    const StabiliserChain chain(c.points, c.point_generators);
    for (const int64_t p : chain.primes()) primes.insert(p);
    const int64_t here = derived_length(c.points, chain.generators());
    solvable &= here >= 0;
    length = std::max(length, here);
  }
  out.aperiodic = primes.empty();
  out.two_group = primes.empty() || (primes.size() == 1 && *primes.begin() == 2);
  out.solvable = solvable;
  if (solvable) out.derived_length = length;
  out.period_primes.assign(primes.begin(), primes.end());
  out.levels = levels_of(cascade);
}

// The longest way from all states to a single one; none when some word never gets there.
std::optional<int64_t> definite(const Automaton& a, const Cascade& cascade) {
  const auto& sets = cascade.sets();
  std::vector<int64_t> order;
  for (size_t i = 0; i < sets.size(); ++i)
    if (sets[i].size > 1) order.push_back(static_cast<int64_t>(i));
  // Images come later: they are smaller, or of a class that was closed before.
  std::sort(order.begin(), order.end(), [&](int64_t p, int64_t q) {
    const auto &s = sets[static_cast<size_t>(p)], &t = sets[static_cast<size_t>(q)];
    return std::pair(s.size, s.type) > std::pair(t.size, t.type);
  });
  std::vector<int64_t> way(sets.size(), -1);
  way[0] = 0;
  int64_t longest = 0;
  for (const int64_t p : order) {
    const int64_t at = way[static_cast<size_t>(p)];
    if (at < 0) continue;
    for (int64_t x = 0; x < a.symbols; ++x) {
      const auto next = static_cast<size_t>(cascade.image(p, x));
      if (sets[next].type == sets[static_cast<size_t>(p)].type) return std::nullopt;
      way[next] = std::max(way[next], at + 1);
      longest = std::max(longest, at + 1);
    }
  }
  return longest;
}

}  // namespace

std::vector<LevelSummary> levels_of(const Cascade& cascade) {
  std::vector<LevelSummary> out;
  for (int64_t d = 1; d <= cascade.levels(); ++d) {
    LevelSummary level{cascade.most_tiles(d), "1"};
    for (const int64_t c : cascade.classes_of(d)) {
      const auto& type = cascade.classes()[static_cast<size_t>(c)];
      if (!type.moves_tiles()) continue;
      const auto name = group_name(type.tiles, type.tile_generators);
      if (level.group == "1")
        level.group = name;
      else if ((", " + level.group + ",").find(", " + name + ",") == std::string::npos)
        level.group += ", " + name;
    }
    out.push_back(level);
  }
  return out;
}

std::string levels_text(const std::vector<LevelSummary>& levels) {
  const auto permuted = [](const LevelSummary& level) {
    return level.group == "1" ? "" : " (permuted by " + level.group + ")";
  };
  if (levels.size() == 1)
    return cat("1 level of ", levels[0].tiles, " values", permuted(levels[0]));
  std::string list;
  for (const auto& level : levels)
    list += cat(list.empty() ? "" : ", ", level.tiles, permuted(level));
  return cat(levels.size(), " levels of ", list, " values");
}

Class classify(const Automaton& a, const Cascade& cascade) {
  Class out;
  out.states = a.states, out.symbols = a.symbols;
  letters_into(a, out);
  groups_into(cascade, out);
  out.definite = definite(a, cascade);
  if (out.group && !cascade.classes().empty()) {
    const auto& all = cascade.classes()[0];
    const double order = StabiliserChain(all.points, all.point_generators).order();
    if (order < 1e15) out.monoid = static_cast<int64_t>(order);
    return out;
  }
  const int64_t most = kCountedWork / (a.states * std::max<int64_t>(a.symbols, 1)) + 2;
  const auto monoid = transition_monoid(a, std::min(kCounted, most));
  if (monoid) out.monoid = static_cast<int64_t>(monoid->size());
  return out;
}

}  // namespace lrnn::automata
