#pragma once
#include <cstdint>
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

}  // namespace lrnn::automata
