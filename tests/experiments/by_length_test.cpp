#include "experiments/by_length.h"

#include <gtest/gtest.h>

namespace lrnn::experiments {
namespace {

using training::Tally;

TEST(Bins, AreThoseOfThePublishedCurves) {
  std::map<int64_t, Tally> by_length;
  for (int64_t length = 3; length <= 1024; ++length) by_length[length] = {1, 2};
  const auto found = bins(by_length);
  std::vector<int64_t> starts;
  int64_t count = 0, expected = 3;
  for (const auto& bin : found) {
    EXPECT_EQ(bin.lo, expected) << "no length is left out or counted twice";
    expected = bin.hi + 1;
    starts.push_back(bin.lo);
    count += bin.tally.count;
  }
  EXPECT_EQ(expected, 1025);
  EXPECT_EQ(count, 2 * 1022);
  EXPECT_EQ(starts, (std::vector<int64_t>{3, 20, 40, 64, 96, 128, 160, 192, 224, 256, 320, 384, 448,
                                          512, 640, 768, 896}))
      << "1024 alone joins the bin before it";
}

TEST(Bins, FewLengthsStandAlone) {
  const auto found = bins({{5, {1, 1}}, {500, {0, 3}}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].lo, 500);
  EXPECT_EQ(found[1].hi, 500);
  EXPECT_EQ(found[1].tally.count, 3);
  EXPECT_TRUE(bins({}).empty());
}

TEST(Bins, AskedForOneByOneStandAlone) {
  std::map<int64_t, Tally> by_length;
  for (int64_t length = 1; length <= 40; ++length) by_length[10 * length] = {1, 2};
  const auto found = each_length(by_length);
  ASSERT_EQ(found.size(), 40u);
  for (const auto& bin : found) EXPECT_EQ(bin.lo, bin.hi);
  EXPECT_GT(found[0].high, found[0].low);
}

TEST(Interval, HoldsTheAccuracyAndNarrows) {
  double width = 1;
  for (const int64_t n : {10, 100, 1000, 10000}) {
    const Tally tally{n * 3 / 10, n};
    const auto [low, high] = interval(tally);
    EXPECT_LT(low, tally.accuracy());
    EXPECT_GT(high, tally.accuracy());
    EXPECT_LT(high - low, width);
    width = high - low;
    // The normal approximation: 1.96 sqrt(p (1-p) / n) to either side.
    EXPECT_NEAR((high - low) / (2 * 1.96 * std::sqrt(0.21 / double(n))), 1, 0.15) << n;
  }
}

TEST(Interval, NeverClaimsCertainty) {
  EXPECT_LT(interval({100, 100}).first, 0.97);
  EXPECT_EQ(interval({100, 100}).second, 1);
  EXPECT_GT(interval({0, 100}).second, 0.03);
  EXPECT_EQ(interval({0, 0}), (std::pair<double, double>{0, 1}));
}

TEST(Interval, IsTheSameEveryTime) { EXPECT_EQ(interval({37, 90}), interval({37, 90})); }

}  // namespace
}  // namespace lrnn::experiments
