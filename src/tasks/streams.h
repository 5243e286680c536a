#pragma once
#include "base/random.h"
#include "tasks/keys.h"

// Which random numbers belong to what.
namespace lrnn::tasks {

// Far apart, so that a stream plus a small number is never another stream.
enum Stream : uint64_t {
  kTrainStream = 0x1'0000'0000'0000,
  kEvalStream = 0x2'0000'0000'0000,
  kSetStream = 0x3'0000'0000'0000,    // the members of a fixed set
  kEpochStream = 0x4'0000'0000'0000,  // their order in each epoch
  kRowStream = 0x5'0000'0000'0000,    // which rows of a file are for training
};

inline Random stream(uint64_t seed, Split split, uint64_t index) {
  return {seed, split == Split::kTrain ? kTrainStream : kEvalStream, index};
}

inline void expect_length(Range length, int64_t shortest) {
  if (shortest <= length.lo && length.lo <= length.hi && length.hi <= kLongest) [[likely]]
    return;
  throw Error(cat("the length of a sequence ", lengths(shortest).problem(length)));
}

}  // namespace lrnn::tasks
