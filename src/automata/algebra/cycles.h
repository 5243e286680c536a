#pragma once
#include <optional>
#include <string>
#include <vector>

#include "automata/algebra/permutation.h"

// Permutations as people write them: "(123)(45)", "(1 2 3)(4 5)" or "(1,2,10)". Points count from
// 1; without spaces and commas every digit is one. "()" moves nothing.
namespace lrnn::automata {

constexpr int kMostPoints = 64;

using Cycles = std::vector<std::vector<int>>;  // points from 0, each in one place only

// One permutation; nothing, and `why` not, when the text is none.
std::optional<Cycles> read_cycles(const std::string& text, std::string& why);
int largest_point(const Cycles& cycles);  // from 1; 0 when there are no points
Permutation from_cycles(const Cycles& cycles, int points);

// The permutation of so many points that the text is; nothing when it moves others, or does not
// begin with a bracket. Throws when its cycles are none.
std::optional<Permutation> find_permutation(const std::string& text, int points);

// What stands between commas that are in no bracket, without the spaces around it:
// "(1,2), [e,4]" -> "(1,2)" "[e,4]".
std::vector<std::string> outer_list(const std::string& text);

}  // namespace lrnn::automata
