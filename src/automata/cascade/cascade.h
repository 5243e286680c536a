#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "automata/automaton.h"
#include "automata/algebra/permutation.h"

namespace lrnn::automata {

// A set of states that some word maps all states onto, or a single state.
struct ImageSet {
  std::vector<uint64_t> bits;  // of the states
  int64_t size = 0;
  int64_t depth = 0;           // 1 .. levels: the level that splits it; levels + 1: a single state
  int64_t type = -1;           // its ImageClass; -1 for a single state
  int64_t state = -1;          // of a single state
  std::vector<int64_t> tiles;  // the sets it is split into, numbered as in the representative
  std::vector<int> from;       // representative's i-th point -> state: the bijection between them
};

// Sets that letters map onto each other. All are split alike, so one coordinate serves them.
struct ImageClass {
  int64_t level = 0;           // 1 .. levels
  int64_t representative = 0;  // an ImageSet
  int64_t tiles = 0, points = 0;
  // What words that return to the representative do to its points, without the identity, and what
  // the same words do to its tiles: one each, the identity included.
  std::vector<Permutation> point_generators, tile_generators;

  bool moves_tiles() const;  // otherwise the level needs no group
};

// What a level does to its coordinate when the set above it was P, becomes P' and a is read.
struct LevelAction {
  enum Kind { kIdentity, kPermutation, kReset };
  Kind kind = kIdentity;
  int64_t type = -1;          // the class of P' unless kIdentity
  Permutation tiles, points;  // of kPermutation: c -> tiles[c]; the same word on the points
  int64_t target = 0;         // of kReset: c -> target
};

// The holonomy decomposition: every automaton is a cascade of levels, each of which permutes its
// coordinate, resets it or leaves it alone. Pure integers; the reference for everything compiled.
class Cascade {
 public:
  static constexpr int64_t kMostSets = 8000;

  using Coordinates = std::vector<int64_t>;  // one tile number per level
  // Above level d (1 .. levels+1): the set before the letter, the one after it, and the letter.
  struct Triple {
    int64_t before, after, symbol;
    auto operator<=>(const Triple&) const = default;
  };

  // Every state of the automaton counts, reachable or not. Throws when there are too many sets.
  explicit Cascade(const Automaton& a);

  int64_t levels() const { return levels_; }
  const std::vector<ImageSet>& sets() const { return sets_; }
  const std::vector<ImageClass>& classes() const { return classes_; }
  int64_t all_states() const { return 0; }  // the set that holds every state
  int64_t image(int64_t set, int64_t symbol) const;
  int64_t most_tiles(int64_t level) const;  // of a class of this level
  std::vector<int64_t> classes_of(int64_t level) const;

  LevelAction action(int64_t level, const Triple& at) const;
  Coordinates coordinates(int64_t state) const;
  int64_t state(const Coordinates& c) const;
  // One letter. `triples`, when given, receives levels + 1 entries.
  Coordinates step(const Coordinates& c, int64_t symbol,
                   std::vector<Triple>* triples = nullptr) const;

  // With 0 for the coordinates of levels that split nothing at the moment. Such a coordinate is
  // never read: before the level splits a set again it is reset.
  Coordinates without_idle(Coordinates c) const;

  // Everything that words from the start state lead to, up to idle coordinates.
  struct Reachable {
    std::vector<Coordinates> coordinates;
    std::vector<std::vector<Triple>> triples;  // [level - 1], sorted; levels + 1 of them
  };
  // Throws when there are more than `most` coordinate tuples.
  Reachable reachable(int64_t most = 200000) const;

  // Whether decode(step(c, a)) = next(decode(c), a) for everything reachable.
  bool faithful() const;

 private:
  using Bits = std::vector<uint64_t>;
  friend class Holonomy;  // fills the tables below

  int64_t first_tile_over(int64_t set, const Bits& bits) const;
  LevelAction compute(int64_t level, const Triple& at) const;

  Automaton automaton_;
  int64_t levels_ = 0;
  std::vector<ImageSet> sets_;
  std::vector<ImageClass> classes_;
  std::vector<int64_t> images_;  // [set * symbols + symbol]
  mutable std::map<std::pair<int64_t, Triple>, LevelAction> known_;
};

}  // namespace lrnn::automata
