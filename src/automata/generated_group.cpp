#include "automata/generated_group.h"

#include <algorithm>
#include <map>

#include "automata/permutation_group.h"
#include "base/error.h"

namespace lrnn::automata {
namespace {

constexpr int kMostPoints = 64;

[[noreturn]] void no_permutations(const std::string& name, const std::string& why) {
  throw Error(cat("'", name, "' is not a list of permutations: ", why),
              "write cycles such as (123)(45),(12)");
}

using Cycle = std::vector<int>;

// The points of the cycle whose '(' is at `at`, which moves behind its ')'.
Cycle read_cycle(const std::string& name, size_t& at) {
  const size_t close = name.find(')', at);
  if (close == std::string::npos) no_permutations(name, "'(' is never closed");
  const std::string inside = name.substr(at + 1, close - at - 1);
  at = close + 1;
  const bool spaced = inside.find_first_of(" ,") != std::string::npos;
  Cycle out;
  int point = -1;
  for (const char c : inside + " ") {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && c != ' ' && c != ',') no_permutations(name, cat("'", c, "' is no point"));
    if (digit) point = (std::max(point, 0) * 10 + (c - '0'));
    if (point < 0 || (digit && spaced && point <= kMostPoints)) continue;
    if (point < 1 || point > kMostPoints)
      no_permutations(name, cat("points are 1 .. ", kMostPoints));
    out.push_back(point - 1);
    point = -1;
  }
  return out;
}

std::vector<std::vector<Cycle>> read_permutations(const std::string& name) {
  std::vector<std::vector<Cycle>> out(1);
  for (size_t at = 0; at < name.size();) {
    if (name[at] == '(') {
      out.back().push_back(read_cycle(name, at));
    } else if (name[at] == ',' && !out.back().empty()) {
      out.emplace_back(), ++at;
    } else if (name[at] == ' ') {
      ++at;
    } else {
      no_permutations(name, cat("'", name[at], "' is not expected"));
    }
  }
  if (out.back().empty()) no_permutations(name, "a permutation is missing after ','");
  return out;
}

Permutation from_cycles(const std::string& name, const std::vector<Cycle>& cycles, int points) {
  Permutation out;
  for (int i = 0; i < points; ++i) out.push_back(i);
  std::vector<uint8_t> seen(static_cast<size_t>(points), 0);
  for (const auto& cycle : cycles)
    for (size_t i = 0; i < cycle.size(); ++i) {
      const auto from = static_cast<size_t>(cycle[i]);
      if (seen[from]++) no_permutations(name, cat(from + 1, " comes twice"));
      out[from] = cycle[(i + 1) % cycle.size()];
    }
  return out;
}

class Generated final : public Group::Law {
 public:
  explicit Generated(const std::vector<Permutation>& generators) {
    const PermutationGroup group(static_cast<int64_t>(generators[0].size()), generators);
    for (int64_t g = 0; g < group.order(); ++g) elements_.push_back(group.element(g));
    std::sort(elements_.begin(), elements_.end());
    for (const auto& p : elements_) index_.emplace(p, static_cast<int64_t>(index_.size()));
    for (const auto& p : generators) generators_.push_back(index_.at(p));
  }
  int64_t order() const override { return static_cast<int64_t>(elements_.size()); }
  int64_t product(int64_t a, int64_t b) const override { return index_.at(compose(at(a), at(b))); }
  int64_t inverse(int64_t a) const override { return index_.at(automata::inverse(at(a))); }
  std::string element(int64_t a) const override { return cycles(at(a)); }
  std::vector<int64_t> generators() const override { return generators_; }

 private:
  const Permutation& at(int64_t a) const { return elements_[static_cast<size_t>(a)]; }
  std::vector<Permutation> elements_;
  std::map<Permutation, int64_t> index_;
  std::vector<int64_t> generators_;
};

}  // namespace

std::shared_ptr<const Group::Law> generated_law(const std::string& name) {
  const auto lists = read_permutations(name);
  int points = 1;
  for (const auto& list : lists)
    for (const auto& cycle : list)
      for (const int p : cycle) points = std::max(points, p + 1);
  std::vector<Permutation> generators;
  for (const auto& list : lists) generators.push_back(from_cycles(name, list, points));
  if (StabiliserChain(points, generators).order() > static_cast<double>(Group::kLargest))
    throw Error(cat("the group '", name, "' has more than ", Group::kLargest, " elements"),
                "the largest ones are S7, A7, Z10000, D5000 and products within that size");
  return std::make_shared<Generated>(generators);
}

}  // namespace lrnn::automata
