#pragma once
#include <gtest/gtest.h>

#include "ops/torch.h"

namespace lrnn::training {

// Two trainings, step by step and weight by weight to the bit.
template <class Trained> void expect_same_updates(const Trained& a, const Trained& b) {
  ASSERT_EQ(a.updates.size(), b.updates.size());
  for (size_t i = 0; i < a.updates.size(); ++i) {
    EXPECT_EQ(a.updates[i].loss, b.updates[i].loss) << "update " << i;
    EXPECT_EQ(a.updates[i].grad_norm, b.updates[i].grad_norm) << "update " << i;
    EXPECT_EQ(a.updates[i].right, b.updates[i].right) << "update " << i;
  }
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (size_t i = 0; i < a.weights.size(); ++i)
    EXPECT_TRUE(torch::equal(a.weights[i], b.weights[i])) << "weight " << i;
}

}  // namespace lrnn::training
