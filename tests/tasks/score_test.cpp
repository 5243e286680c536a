#include "tasks/score.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace lrnn::tasks {
namespace {

// The definition in the papers: floor(cumulative right / cumulative positions), averaged.
TEST(PrefixScore, IsTheMeanOfTheFlooredRatios) {
  Random random(5, 0, 0);
  PrefixScore score;
  constexpr size_t kLongest = 20, kCount = 400;
  std::vector<double> curve(kLongest);
  double right = 0, positions = 0, whole = 0;
  for (size_t i = 0; i < kCount; ++i) {
    std::vector<bool> flags(i == 0 ? kLongest : 1 + random.below(kLongest));
    for (size_t l = 0; l < flags.size(); ++l) flags[l] = random.uniform() < 0.9;
    score.add(flags);
    int64_t good = 0, valid = 0;
    for (size_t l = 0; l < kLongest; ++l) {
      if (l < flags.size()) good += flags[l], ++valid;
      curve[l] += static_cast<double>(good / valid) / kCount;
    }
    right += static_cast<double>(good);
    positions += static_cast<double>(valid);
    whole += static_cast<double>(good / valid) / kCount;
  }
  const auto got = score.curve();
  ASSERT_EQ(got.size(), kLongest);
  for (size_t l = 0; l < kLongest; ++l) EXPECT_NEAR(got[l], curve[l], 1e-12);
  for (size_t l = 1; l < kLongest; ++l) EXPECT_LE(got[l], got[l - 1]);
  EXPECT_NEAR(score.token_accuracy(), right / positions, 1e-12);
  EXPECT_NEAR(score.sequence_accuracy(), whole, 1e-12);
  EXPECT_EQ(score.sequences(), static_cast<int64_t>(kCount));
}

TEST(PrefixScore, OfNothingIsZero) {
  const PrefixScore score;
  EXPECT_EQ(score.token_accuracy(), 0);
  EXPECT_EQ(score.sequence_accuracy(), 0);
  EXPECT_TRUE(score.curve().empty());
}

}  // namespace
}  // namespace lrnn::tasks
