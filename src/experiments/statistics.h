#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

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

}  // namespace lrnn::experiments
