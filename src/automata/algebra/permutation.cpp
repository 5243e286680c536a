#include "automata/algebra/permutation.h"

#include <numeric>

namespace lrnn::automata {

int64_t factorial(int64_t n) {
  int64_t out = 1;
  for (int64_t i = 2; i <= n; ++i) out *= i;
  return out;
}

int64_t rank(const Permutation& p) {
  const size_t n = p.size();
  int64_t id = 0;
  for (size_t i = 0; i < n; ++i) {
    int64_t smaller = 0;
    for (size_t j = i + 1; j < n; ++j) smaller += p[j] < p[i];
    id = id * static_cast<int64_t>(n - i) + smaller;
  }
  return id;
}

Permutation unrank(int64_t id, int64_t n) {
  Permutation left(static_cast<size_t>(n)), p;
  std::iota(left.begin(), left.end(), 0);
  for (int64_t block = factorial(n); n > 0; --n) {
    block /= n;
    const auto at = left.begin() + id / block;
    p.push_back(*at);
    left.erase(at);
    id %= block;
  }
  return p;
}

Permutation compose(const Permutation& a, const Permutation& b) {
  Permutation out;
  for (const int i : b) out.push_back(a[static_cast<size_t>(i)]);
  return out;
}

Permutation inverse(const Permutation& p) {
  Permutation out(p.size());
  for (size_t i = 0; i < p.size(); ++i) out[static_cast<size_t>(p[i])] = static_cast<int>(i);
  return out;
}

bool even(const Permutation& p) {
  int inversions = 0;
  for (size_t i = 0; i < p.size(); ++i)
    for (size_t j = i + 1; j < p.size(); ++j) inversions += p[j] < p[i];
  return inversions % 2 == 0;
}

std::string cycles(const Permutation& p) {
  std::string out;
  std::vector<bool> seen(p.size());
  for (size_t i = 0; i < p.size(); ++i) {
    if (seen[i] || p[i] == static_cast<int>(i)) continue;
    out += '(';
    for (size_t j = i; !seen[j]; j = static_cast<size_t>(p[j])) {
      seen[j] = true;
      if (p.size() > 9 && out.back() != '(') out += ',';
      out += std::to_string(j + 1);
    }
    out += ')';
  }
  return out.empty() ? "e" : out;
}

std::string one_line(const Permutation& p) {
  std::string out;
  for (const int i : p) out += (out.empty() ? "" : " ") + std::to_string(i + 1);
  return out;
}

}  // namespace lrnn::automata
