#include "automata/algebra/cycles.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace lrnn::automata {
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
