#pragma once
#include <cstdint>

namespace lrnn {

// Random numbers as a pure function of (seed, stream, index): no global generator, no order. The
// same triple gives the same numbers on every machine, whatever was drawn before.
//
// SplitMix64 (Steele, Lea, Flood 2014) over a hashed key: 64 bits of state are plenty for one
// sample, and neighbouring indices start at unrelated points.
class Random {
 public:
  Random(uint64_t seed, uint64_t stream, uint64_t index)
      : state_(mix(mix(mix(seed) + stream) + index)) {}

  uint64_t bits() { return mix(state_ += 0x9E3779B97F4A7C15u); }

  // Uniform over 0 .. n-1, without bias: numbers from the incomplete last block are drawn again.
  uint64_t below(uint64_t n) {
    const uint64_t reject = (0 - n) % n;
    uint64_t x = bits();
    while (x < reject) x = bits();
    return x % n;
  }

  // Uniform over lo .. hi, both ends included.
  int64_t between(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(below(static_cast<uint64_t>(hi - lo) + 1));
  }

  // Uniform over [0, 1) in steps of 2^-53.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

 private:
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  uint64_t state_;
};

}  // namespace lrnn
