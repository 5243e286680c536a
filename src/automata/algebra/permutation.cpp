#include "automata/algebra/permutation.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"

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

namespace {

// The points of a cycle, given what stands between its brackets; what is wrong with it, or nothing.
std::string read_points(const std::string& inside, std::vector<int>& out) {
  const bool spaced = inside.find_first_of(" ,") != std::string::npos;
  int point = -1;
  for (const char c : inside + " ") {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && c != ' ' && c != ',') return cat("'", c, "' is no point");
    if (digit) point = (std::max(point, 0) * 10 + (c - '0'));
    if (point < 0 || (digit && spaced && point <= kMostPoints)) continue;
    if (point < 1 || point > kMostPoints) return cat("points are 1 .. ", kMostPoints);
    out.push_back(point - 1);
    point = -1;
  }
  return {};
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

}  // namespace

std::optional<Cycles> read_cycles(const std::string& text, std::string& why) {
  Cycles out;
  std::set<int> seen;
  why.clear();
  for (size_t at = 0; at < text.size() && why.empty();) {
    if (text[at] == ' ') {
      ++at;
      continue;
    }
    const size_t close = text.find(')', at);
    if (text[at] != '(')
      why = cat("'", text[at], "' is not expected");
    else if (close == std::string::npos)
      why = "'(' is never closed";
    else
      why = read_points(text.substr(at + 1, close - at - 1), out.emplace_back());
    if (!why.empty()) return {};
    for (const int p : out.back())
      if (!seen.insert(p).second) why = cat(p + 1, " comes twice");
    at = close + 1;
  }
  if (out.empty()) why = "a permutation is missing";
  if (!why.empty()) return {};
  return out;
}

int largest_point(const Cycles& cycles) {
  int out = 0;
  for (const auto& cycle : cycles)
    for (const int p : cycle) out = std::max(out, p + 1);
  return out;
}

Permutation from_cycles(const Cycles& cycles, int points) {
  Permutation out;
  for (int i = 0; i < points; ++i) out.push_back(i);
  for (const auto& cycle : cycles)
    for (size_t i = 0; i < cycle.size(); ++i)
      out[static_cast<size_t>(cycle[i])] = cycle[(i + 1) % cycle.size()];
  return out;
}

std::optional<Permutation> find_permutation(const std::string& text, int points) {
  if (text.empty() || text[0] != '(') return {};
  std::string why;
  const auto cycles = read_cycles(text, why);
  if (!cycles)
    throw Error(cat("'", text, "' is not a permutation: ", why),
                "write cycles that share no point, such as (123)(45)");
  if (largest_point(*cycles) > points) return {};
  return from_cycles(*cycles, points);
}

std::vector<std::string> outer_list(const std::string& text) {
  std::vector<std::string> out;
  int depth = 0;
  size_t begin = 0;
  for (size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ',';
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c != ',' || (depth > 0 && at < text.size())) continue;
    out.push_back(trimmed(text.substr(begin, at - begin)));
    begin = at + 1;
  }
  return out;
}

}  // namespace lrnn::automata
