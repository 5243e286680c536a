#include "experiments/by_position.h"

#include <algorithm>
#include <cmath>

namespace lrnn::experiments {

void ByPosition::add(const tasks::Example& example, const training::TokenLosses& losses) {
  if (sums_.size() < example.target.size()) sums_.resize(example.target.size());
  std::vector<size_t> at;  // the positions with a target
  std::vector<double> before = {0};
  for (size_t i = 0; i < example.target.size(); ++i) {
    if (example.target[i] < 0) continue;
    at.push_back(i);
    before.push_back(before.back() + double(losses.loss[i]));
  }
  const auto count = int64_t(at.size());
  for (int64_t k = 0; k < count; ++k) {
    const int64_t half = std::min(half_, k), end = std::min(count, k + half + 1);
    const double smoothed =
        (before[size_t(end)] - before[size_t(k - half)]) / double(end - k + half);
    auto& sum = sums_[at[size_t(k)]];
    sum.loss += double(losses.loss[at[size_t(k)]]);
    sum.smoothed += smoothed, sum.squares += smoothed * smoothed;
    sum.running += before[size_t(k + 1)] / double(k + 1);
    sum.right += losses.right[at[size_t(k)]], ++sum.count;
  }
}

std::vector<PositionLoss> ByPosition::rows() const {
  std::vector<PositionLoss> out;
  for (size_t i = 0; i < sums_.size(); ++i) {
    const auto& s = sums_[i];
    if (s.count == 0) continue;
    const double n = double(s.count);
    PositionLoss row;
    row.position = int64_t(i) + 1, row.sequences = s.count;
    row.loss = s.loss / n, row.smoothed = s.smoothed / n;
    if (s.count > 1)
      row.error = std::sqrt(std::max(0.0, s.squares / n - row.smoothed * row.smoothed) / (n - 1));
    row.running = std::exp(s.running / n);
    row.accuracy = double(s.right) / n;
    out.push_back(row);
  }
  return out;
}

}  // namespace lrnn::experiments
