#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lrnn::automata {

// One-line notation, from 0: i -> p[i].
using Permutation = std::vector<int>;

int64_t factorial(int64_t n);  // n <= 20

// The place of p among all permutations in lexicographic order, and back.
int64_t rank(const Permutation& p);
Permutation unrank(int64_t id, int64_t n);

Permutation compose(const Permutation& a, const Permutation& b);  // b first
Permutation inverse(const Permutation& p);
bool even(const Permutation& p);
std::string cycles(const Permutation& p);    // "(123)(45)", points from 1; the identity is "e"
std::string one_line(const Permutation& p);  // "2 1 3": where 1, 2, 3 go

// Permutations as people write them: "(123)(45)", "(1 2 3)(4 5)" or "(1,2,10)". Points count from
// 1; without spaces and commas every digit is one. "()" moves nothing.
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
