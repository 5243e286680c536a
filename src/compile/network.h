#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compile/plan/head.h"

// A model before it is weights: named numbers in the residual stream, heads that hold states and
// gates that look things up. Every number is dyadic and small, so that float32 sums are exact
// whatever their order.
namespace lrnn::compile {

// sum of weight * feature, plus a constant.
struct Form {
  std::vector<std::pair<int64_t, double>> terms = {};
  double constant = 0;

  Form& add(int64_t feature, double weight = 1) {
    terms.emplace_back(feature, weight);
    return *this;
  }
  Form& add(const Form& other, double weight = 1) {
    for (const auto& [f, w] : other.terms) terms.emplace_back(f, w * weight);
    constant += other.constant * weight;
    return *this;
  }
};
inline Form feature(int64_t f, double weight = 1) { return Form{{{f, weight}}, 0}; }

// One dimension of the residual stream. It is stored as offset + value: adding a number to a large
// one rounds it, and this is how what a head reads becomes a multiple of 2^-19 again. What gates
// write is exact, and what only the answers read need not be: neither has an offset.
struct Feature {
  std::string name;
  double offset = 0;
  double initial = 0;   // its value in the embedding of every token
  double most = 1;      // its largest absolute value
  int64_t choice = -1;  // of those with the same choice at most one is not 0
};
// Of what heads read: in the middle between two powers of two, so that all of it has the same step.
constexpr double kReadOffset = 24;  // if it is of size 1
constexpr double kReadScale = 2;    // of coordinates that need all the digits that are left
// If it is made of signed integers up to `largest`: rounding errors grow with the square of it.
double read_offset(int64_t largest);

// What a head does to its state when a feature is 1: Householder steps, the first applied first.
struct Step {
  std::vector<double> key;  // not normalised; rows that are missing are 0
  double beta = 2;
};
struct Action {
  int64_t feature;
  std::vector<Step> steps;
  int64_t element = -1;  // of the group that the head holds
};

// A state of rows x cols. Features that no action names leave it alone.
struct Head {
  int64_t rows = 1, cols = 1;
  std::vector<double> query;    // rows
  std::vector<double> start;    // rows * cols
  std::vector<Action> actions;  // at most one of their features is 1 at a time
  bool one_row = false;         // the key is always the first row
  // All actions are alike, and the step is made unless one of `idle` is 1: its size then does not
  // depend on how exactly a feature is 1.
  bool usual = false;
  std::vector<int64_t> idle;
  std::vector<Form> value;  // of the first step, one per column; empty: zeros
  // state^T query, column by column, times `scale`, into these features.
  std::vector<int64_t> to;
  double scale = 1;
  const GroupHead* group = nullptr;  // whose matrices the state is, if it is one
  const GroupPlan* plan = nullptr;
};

// Adds `out` to features when `sum` is at least `margin`, and nothing when it is at most -margin;
// in between it does not matter, because the sum is never there.
struct Gate {
  Form sum;
  double margin = 0.5;
  std::vector<std::pair<int64_t, double>> out;
  double highest = 0.5;  // the largest that the sum can be
  // Of the gates of a family only those of one member are open at a time; -1: no family.
  int64_t family = -1, member = -1;
};

struct Layer {
  std::vector<Head> heads;
  std::vector<Gate> gates;
};

struct Network {
  std::vector<Feature> features;
  std::vector<int64_t> symbols;  // the feature that is 1 when the token is read
  std::vector<Layer> layers;
  // The answer is the label with the largest one; one without terms is never it. The right label
  // leads by at least `lead`, and what they all read is at most `reach` in sum.
  std::vector<Form> labels;
  double lead = 1, reach = 1;

  int64_t add(std::string name, double offset, double initial = 0) {
    features.push_back({std::move(name), offset, initial});
    return static_cast<int64_t>(features.size()) - 1;
  }
  Layer& layer(int64_t i) {
    if (static_cast<int64_t>(layers.size()) <= i) layers.resize(static_cast<size_t>(i) + 1);
    return layers[static_cast<size_t>(i)];
  }
  // At most one of these is not 0 at a time.
  void choose(const std::vector<int64_t>& among);
  int64_t new_family() { return families++; }
  int64_t families = 0;
  int64_t householders() const;
  int64_t heads() const;    // of the layer with most
  int64_t key_dim() const;  // of the largest head
  int64_t value_dim() const;
  int64_t gates() const;  // of the layer with most
};

// All of these are 1, each form being 1 or at most 0.
Gate all_of(const std::vector<Form>& literals, std::vector<std::pair<int64_t, double>> out);

}  // namespace lrnn::compile
