#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

// The published numbers, read from configs/published.json, and the config behind each.
namespace lrnn::experiments {

// What the papers report of several seeds. All are NaN when there is nothing to summarise.
struct Summary {
  static constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  double best = kNothing, median = kNothing, mad = kNothing;
};

// The middle one; of an even number the mean of the two in the middle.
inline double median_of(std::vector<double> values) {
  if (values.empty()) return Summary::kNothing;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// MAD is the raw median absolute deviation, without the factor 1.4826.
inline Summary summarise(const std::vector<double>& values) {
  if (values.empty()) return {};
  Summary out;
  out.best = *std::max_element(values.begin(), values.end());
  out.median = median_of(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - out.median));
  out.mad = median_of(distances);
  return out;
}

// One number of a published table, or one line of a published figure.
struct Cell {
  std::string task, model;
  std::string config;  // file under configs/ without .yaml
  int64_t at = 0;      // tasks with many answers: the prefix that is scored; 0: all of it
  Summary published;   // NaN: not published
  std::string says;    // published in words, where there is no number
  // Of a language model: what was measured, by name; perplexities, the others in percent.
  std::vector<std::pair<std::string, double>> numbers = {};
  // Scaled accuracy by number of tokens, or prefix accuracy by length: for comparing shapes.
  std::vector<std::pair<double, double>> curve;
};

struct Suite {
  std::string name, about, source, score;
  std::vector<Cell> cells;
};

std::vector<Suite> read_suites(const std::string& configs);
const Suite& find_suite(const std::vector<Suite>& suites, const std::string& name);

// "parity,mamba": words found in the names of tasks choose tasks, all others choose models (by
// their name or their config's). Several words of one kind are alternatives. A word that chooses
// nothing is an Error.
Suite only(Suite suite, const std::string& words);

}  // namespace lrnn::experiments
