#pragma once
#include "base/config.h"

namespace lrnn::training {

struct TrainConfig;

// How long the words of training are while they grow. Words begin with 2 letters, or with the
// shortest that there are. Every 50 batches they become a quarter longer if the share train.grow_at
// of their letters was answered right, and half as long if not even half of them were.
//
// What a batch says counts from the one after the next on: while a GPU works on a batch the next
// one is made already.
struct Growth {
  int64_t length = 0, then = 0;                 // of the next batch and of those after it
  int64_t batches = 0, right = 0, targets = 0;  // since the length was last decided

  static Growth begin(const TrainConfig& train, Range words);
  // After every batch; one that was skipped says nothing.
  void saw(const TrainConfig& train, Range words, int64_t right, int64_t targets);

  // What going on later needs, for both directions.
  template <class Self, class Visit> static void fields(Self& growth, Visit&& visit) {
    visit("length", growth.length), visit("then", growth.then);
    visit("batches", growth.batches), visit("right", growth.right);
    visit("targets", growth.targets);
  }
  bool operator==(const Growth&) const = default;
};

}  // namespace lrnn::training
