#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "automata/cascade/cascade.h"

namespace lrnn::automata {

// One level of a cascade: it holds one of so many values, which a letter overwrites, permutes or
// leaves alone.
struct LevelSummary {
  int64_t tiles;      // the values: tiles of the largest class
  std::string group;  // what permutes them; "1" when nothing does
};
constexpr const char* kWhatALevelIs =
    "a level holds one of its values; a letter overwrites it, permutes it or leaves it";
std::vector<LevelSummary> levels_of(const Cascade& cascade);
// "2 levels of 4, 3 (permuted by S3) values"
std::string levels_text(const std::vector<LevelSummary>& levels);

// Where an automaton stands among the regular languages. All of it follows from the groups of the
// holonomy decomposition.
struct Class {
  int64_t states = 0, symbols = 0;
  std::optional<int64_t> monoid;  // its size, when it is not too large to count
  bool aperiodic = false;         // star-free: no group but the trivial one
  bool two_group = false;         // every group has 2^j elements
  bool solvable = false;
  bool group = false;              // every letter permutes the states
  bool permutation_reset = false;  // every letter permutes the states or maps them to one
  bool identity_reset = false;
  std::optional<int64_t> derived_length;  // none when not solvable
  std::vector<int64_t> period_primes;     // primes that divide the order of a group
  std::vector<int64_t> letter_periods;    // one per symbol
  std::optional<int64_t> definite;        // the least k: the last k letters decide the state
  std::vector<LevelSummary> levels;
};

Class classify(const Automaton& a, const Cascade& cascade);

}  // namespace lrnn::automata
