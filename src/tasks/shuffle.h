#pragma once
#include <bit>
#include <cstdint>

#include "base/random.h"

namespace lrnn::tasks {

// A random-looking permutation of 0 .. size-1 that is computed, not stored: a Feistel network over
// the next even number of bits, applied again while it leads outside (Black and Rogaway 2002).
class Shuffle {
 public:
  Shuffle(uint64_t size, uint64_t seed, uint64_t stream)
      : size_(size), seed_(seed), stream_(stream) {
    const int bits = size > 2 ? std::bit_width(size - 1) : 2;
    half_ = (bits + 1) / 2;
    mask_ = (uint64_t{1} << half_) - 1;
  }

  uint64_t operator()(uint64_t i) const {
    do i = once(i);
    while (i >= size_);
    return i;
  }

 private:
  static constexpr uint64_t kRounds = 8;

  uint64_t once(uint64_t i) const {
    uint64_t left = i >> half_, right = i & mask_;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t f = Random(seed_, stream_ + round, right).bits() & mask_;
      const uint64_t next = left ^ f;
      left = right;
      right = next;
    }
    return left << half_ | right;
  }

  uint64_t size_, seed_, stream_, mask_ = 0;
  int half_ = 1;
};

}  // namespace lrnn::tasks
