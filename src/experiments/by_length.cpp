#include "experiments/by_length.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/random.h"

namespace lrnn::experiments {
namespace {

constexpr size_t kFewLengths = 12;
constexpr int kResamples = 1000;
constexpr uint64_t kStream = 0x626F6F74;  // any fixed number: the same data give the same interval

// The first length of the bin after the one that starts at `start`.
int64_t next_start(int64_t start) {
  if (start < 40) return start < 20 ? 20 : 40;
  if (start < 64) return 64;
  int64_t width = 32;
  while (start >= 8 * width) width *= 2;
  return start / width * width + width;
}

}  // namespace

std::vector<LengthBin> bins(const std::map<int64_t, training::Tally>& by_length) {
  if (by_length.size() <= kFewLengths) return each_length(by_length);
  std::vector<LengthBin> out;
  int64_t end = 0;
  for (const auto& [length, tally] : by_length) {
    if (out.empty() || length >= end) {
      while (end <= length) end = next_start(end);
      out.push_back({length, length, {}});
    }
    out.back().hi = length;
    out.back().tally.right += tally.right, out.back().tally.count += tally.count;
  }
  // One left-over length (256 after 224-255) has too few sequences for a point of its own.
  if (out.size() > 1 && out.back().lo == out.back().hi) {
    const auto last = out.back();
    out.pop_back();
    out.back().hi = last.hi;
    out.back().tally.right += last.tally.right, out.back().tally.count += last.tally.count;
  }
  for (auto& bin : out) std::tie(bin.low, bin.high) = interval(bin.tally);
  return out;
}

std::vector<LengthBin> each_length(const std::map<int64_t, training::Tally>& by_length) {
  std::vector<LengthBin> out;
  for (const auto& [length, tally] : by_length) {
    LengthBin bin{length, length, tally};
    std::tie(bin.low, bin.high) = interval(tally);
    out.push_back(bin);
  }
  return out;
}

std::vector<LengthBin> prefix_bins(const training::Evaluation& e) {
  std::vector<LengthBin> out;
  const int64_t n = e.sequences.count;
  for (const double share : e.prefix) {
    const auto at = int64_t(out.size());
    LengthBin bin{at, at, {std::llround(share * double(n)), n}};
    std::tie(bin.low, bin.high) = interval(bin.tally);
    out.push_back(bin);
  }
  return out;
}

std::pair<double, double> interval(const training::Tally& tally) {
  if (tally.count == 0) return {0, 1};
  const double n = double(tally.count), bound = std::pow(0.025, 1 / n);
  if (tally.right == tally.count) return {bound, 1};
  if (tally.right == 0) return {0, 1 - bound};
  std::vector<double> means(kResamples);
  for (int r = 0; r < kResamples; ++r) {
    Random random(uint64_t(tally.right), kStream, uint64_t(r));
    int64_t right = 0;
    for (int64_t i = 0; i < tally.count; ++i)
      right += int64_t(random.below(uint64_t(tally.count))) < tally.right;
    means[size_t(r)] = double(right) / n;
  }
  std::sort(means.begin(), means.end());
  return {means[size_t(kResamples * 0.025)], means[size_t(kResamples * 0.975)]};
}

double scaled(double accuracy, double chance) { return (accuracy - chance) / (1 - chance); }

}  // namespace lrnn::experiments
