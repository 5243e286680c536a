#include <algorithm>
#include <map>

#include "automata/algebra/group.h"
#include "automata/algebra/permutation.h"
#include "automata/algebra/permutation_group.h"
#include "base/error.h"

// The group that some permutations generate, its elements listed and numbered in order.
namespace lrnn::automata {
namespace {

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
  std::string one_line(int64_t a) const override { return automata::one_line(at(a)); }
  int64_t find(const std::string& text) const override {
    const auto p = find_permutation(text, static_cast<int>(elements_[0].size()));
    const auto found = p ? index_.find(*p) : index_.end();
    return found == index_.end() ? -1 : found->second;
  }
  std::vector<int64_t> generators() const override { return generators_; }

 private:
  const Permutation& at(int64_t a) const { return elements_[static_cast<size_t>(a)]; }
  std::vector<Permutation> elements_;
  std::map<Permutation, int64_t> index_;
  std::vector<int64_t> generators_;
};

}  // namespace

std::shared_ptr<const Group::Law> generated_law(const std::string& name) {
  std::vector<Cycles> list;
  int points = 1;
  for (const auto& part : outer_list(name)) {
    std::string why;
    const auto cycles = read_cycles(part, why);
    if (!cycles)
      throw Error(cat("'", name, "' is not a list of permutations: ", why),
                  "write cycles such as (123)(45),(12)");
    list.push_back(*cycles);
    points = std::max(points, largest_point(*cycles));
  }
  std::vector<Permutation> generators;
  for (const auto& cycles : list) generators.push_back(from_cycles(cycles, points));
  if (StabiliserChain(points, generators).order() > static_cast<double>(Group::kLargest))
    throw Error(cat("the group '", name, "' has more than ", Group::kLargest, " elements"),
                "the largest ones are S7, A7, Z10000, D5000 and products within that size");
  return std::make_shared<Generated>(generators);
}

}  // namespace lrnn::automata
