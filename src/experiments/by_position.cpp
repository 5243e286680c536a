#include "experiments/by_position.h"

#include <algorithm>
#include <cmath>

namespace lrnn::experiments {

void ByPosition::add(const tasks::Example& example, const training::TokenLosses& losses) {
  if (sums_.size() < example.target.size()) sums_.resize(example.target.size());
  double sum = 0;
  int64_t count = 0;
  for (size_t i = 0; i < example.target.size(); ++i) {
    auto& at = sums_[i];
    if (example.target[i] >= 0) {
      const double loss = losses.loss[i];
      sum += loss, ++count;
      at.loss += loss, at.squares += loss * loss, at.right += losses.right[i], ++at.count;
    }
    if (count) at.running += sum / double(count), ++at.until;
  }
}

std::vector<PositionLoss> ByPosition::rows(int64_t smooth) const {
  std::vector<PositionLoss> out;
  for (size_t i = 0; i < sums_.size(); ++i) {
    const auto& s = sums_[i];
    if (s.count == 0) continue;
    const double n = double(s.count), mean = s.loss / n;
    PositionLoss row;
    row.position = int64_t(i) + 1, row.loss = mean, row.sequences = s.count;
    if (s.count > 1) row.error = std::sqrt(std::max(0.0, s.squares / n - mean * mean) / (n - 1));
    row.running = std::exp(s.running / double(s.until));
    row.accuracy = double(s.right) / n;
    out.push_back(row);
  }
  // Of rows, not of positions: none is missing where nothing is masked.
  std::vector<double> before = {0};
  for (const auto& row : out) before.push_back(before.back() + row.loss);
  const auto half = smooth / 2, count = int64_t(out.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t low = std::max<int64_t>(0, i - half), high = std::min(count, i + half + 1);
    out[size_t(i)].smoothed = (before[size_t(high)] - before[size_t(low)]) / double(high - low);
  }
  return out;
}

}  // namespace lrnn::experiments
