#pragma once
#include <map>
#include <optional>

#include "compile/network.h"
#include "compile/plan/head.h"

// The heads that hold a group, and what can be told from what they read.
namespace lrnn::compile {

// Which feature being 1 multiplies the group by which element.
struct Turn {
  int64_t feature, element;
};

// What is read from the heads is phi(g), the columns of M(g)^T z side by side, for a z that no
// other element leaves alone.
class GroupReading {
 public:
  // Adds heads and features to layer `at` of the network.
  GroupReading(Network& net, int64_t at, const GroupPlan& plan, const std::vector<Turn>& turns,
               const std::string& name);

  // One element of every class that the heads hold alike.
  const std::vector<int64_t>& elements() const { return elements_; }
  // 1 when the heads hold g, at most 0 when they hold another element.
  Form holds(int64_t g) const;

  // For answers that are read without gates: what is read less its mean over the group, as a form
  // whose largest value among all g belongs to g itself. The residual stream holds what is left,
  // for nobody else reads it.
  void centre(Network& net);
  Form likeness(int64_t g) const;
  double lead() const { return lead_; }  // of the right element's likeness, at least
  double reach() const;                  // the most that the forms read, in sum

  // A single coordinate that tells where tile y goes, as a staircase: tile `first` up to the first
  // bound, then the tile of the last bound that is passed.
  struct Stairs {
    int64_t feature;
    double lowest, highest;
    int64_t first;
    std::vector<std::pair<double, int64_t>> bounds;
    double margin;
  };
  std::optional<Stairs> stairs(int64_t y) const;
  int64_t tile(int64_t g, int64_t y) const;
  // Puts what is read when the heads hold g into a residual stream.
  void hold(int64_t g, double* x) const;

 private:
  std::vector<double> compute(int64_t g, const std::vector<std::vector<double>>& z) const;

  const GroupPlan& plan_;
  std::vector<int64_t> features_;  // per coordinate of phi
  std::vector<double> offsets_;    // of each of them
  // Of phi over the group, which leaves it alone: its inner product with every phi(g) is the same.
  std::vector<double> mean_;
  std::vector<int64_t> elements_;
  std::map<int64_t, std::vector<double>> phi_;  // of each of them
  // The squared length of phi less its next largest inner product; at most that, as a power of two,
  // so that dividing by it is exact.
  double lead_ = 0, gap_ = 0;
};

}  // namespace lrnn::compile
