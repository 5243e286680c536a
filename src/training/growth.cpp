#include "training/growth.h"

#include <algorithm>

#include "training/config.h"

namespace lrnn::training {
namespace {

constexpr int64_t kShortest = 2;  // one product: nothing shorter says how letters act
constexpr int64_t kWindow = 50;
constexpr double kLost = 0.5;

int64_t shortest(Range words) { return std::clamp(kShortest, words.lo, words.hi); }

int64_t decide(double share, double grow_at, int64_t length, Range words) {
  if (share >= grow_at) return std::min(words.hi, length + (length + 3) / 4);
  if (share < kLost) return std::max(shortest(words), length / 2);
  return length;
}

}  // namespace

Growth Growth::begin(const TrainConfig& train, Range words) {
  const int64_t length = train.grow_at > 0 ? shortest(words) : words.hi;
  return {.length = length, .then = length};
}

void Growth::saw(const TrainConfig& train, Range words, int64_t right_now, int64_t targets_now) {
  length = then;
  right += right_now, targets += targets_now;
  if (++batches < kWindow) return;
  if (train.grow_at > 0 && targets > 0)
    then = decide(double(right) / double(targets), train.grow_at, length, words);
  batches = right = targets = 0;
}

}  // namespace lrnn::training
