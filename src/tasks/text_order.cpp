#include "tasks/text_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tasks/keys.h"
#include "tasks/shuffle.h"

namespace lrnn::tasks {
namespace {

// A shuffle has a stream for each of its rounds.
constexpr uint64_t kRounds = 64, kPerSource = uint64_t{1} << 40;

}  // namespace

Mixture::Mixture(const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::pair<double, size_t>> rests;
  uint64_t given = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double share = double(kBlock) * weights[i] / sum;
    counts_.push_back(uint64_t(share));
    given += counts_.back();
    rests.emplace_back(std::floor(share) - share, i);
  }
  // What is left over goes to those that lost most by rounding down.
  std::sort(rests.begin(), rests.end());
  for (size_t i = 0; given < kBlock; ++given) ++counts_[rests[i++].second];
}

Place Mixture::at(uint64_t seed, uint64_t index) const {
  if (counts_.size() == 1) return {0, index};
  const uint64_t block = index / kBlock;
  uint64_t place = Shuffle(kBlock, seed, kMixStream + block * kRounds)(index % kBlock);
  size_t source = 0;
  while (place >= counts_[source]) place -= counts_[source++];
  return {source, block * counts_[source] + place};
}

uint64_t window_of(uint64_t seed, const Place& place, uint64_t windows) {
  const uint64_t epoch = place.number / windows;
  const uint64_t stream = kWindowStream + place.source * kPerSource + epoch * kRounds;
  return Shuffle(windows, seed, stream)(place.number % windows);
}

uint64_t Turns::total() const {
  return std::accumulate(windows_.begin(), windows_.end(), uint64_t{0});
}

Place Turns::at(uint64_t index) const {
  // While all have windows left a round is one of each; then of those that have.
  for (uint64_t done = 0;;) {
    std::vector<size_t> left;
    uint64_t until = UINT64_MAX;
    for (size_t i = 0; i < windows_.size(); ++i)
      if (windows_[i] > done) left.push_back(i), until = std::min(until, windows_[i]);
    const uint64_t here = (until - done) * left.size();
    if (index < here) return {left[index % left.size()], done + index / left.size()};
    index -= here, done = until;
  }
}

}  // namespace lrnn::tasks
