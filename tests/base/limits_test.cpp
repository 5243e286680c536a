#include "base/limits.h"

#include <gtest/gtest.h>

namespace lrnn {
namespace {

// What a config with such a key says of a value, and of the one next to it.
TEST(Limits, SayWhatTheyAllow) {
  const auto no = [](const Limits& limits, auto value) { return limits.problem(value); };
  EXPECT_EQ(no(at_least(1), int64_t{0}), "must be at least 1, got 0");
  EXPECT_EQ(no(at_least(1), int64_t{1}), "");
  EXPECT_EQ(no(at_least_or_0(1, "key_dim"), int64_t{-1}),
            "must be at least 1, or 0 for key_dim; got -1");
  EXPECT_EQ(no(at_least_or_0(1, "key_dim"), int64_t{0}), "");
  EXPECT_EQ(no(above(0), 0.0), "must be above 0, got 0");
  EXPECT_EQ(no(above(0), 1e-300), "");
  EXPECT_EQ(no(positive(), -1.0), "must be positive, got -1");
  EXPECT_EQ(no(between(2, 100000), int64_t{100001}), "must be between 2 and 100000, got 100001");
  EXPECT_EQ(no(between(0, 1), 1.0), "");
  EXPECT_EQ(no(above_and_at_most(0, 1), 0.0), "must be above 0 and at most 1, got 0");
  EXPECT_EQ(no(above_and_at_most(0, 1), 1.0), "");
  EXPECT_EQ(no(from_to_below(0, 1), std::vector<double>{0.5, 1}), "must lie in [0, 1), got 1");
  EXPECT_EQ(no(from_to_below(0, 1), std::vector<double>{0, 0.99}), "");
  EXPECT_EQ(no(Limits{"a", "b"}, std::string("c")), "must be one of a, b; got 'c'");
  EXPECT_EQ(no(Limits{"a", "b"}, std::string("b")), "");
  const auto both = at_least(2).at_most(1e8);
  EXPECT_EQ(both.text(), "at least 2 and at most 100000000");
  EXPECT_EQ(no(both, int64_t{1}), "must be at least 2, got 1");
  EXPECT_EQ(no(both, int64_t{100000001}), "must be at most 100000000, got 100000001");
  EXPECT_EQ(no(both, int64_t{2}), "");
  EXPECT_EQ(no(both, Range{9, 8}), "must be [low, high] with low <= high, got [9, 8]");
  EXPECT_EQ(no(both, Range{1, 8}), "must be at least 2, got 1");
  EXPECT_EQ(no(both, Range{2, 200000000}), "must be at most 100000000, got 200000000");
  EXPECT_EQ(no(both, Range{2, 100000000}), "");
  const Limits ranges = {Range{0, 1}, Range{-1, 1}};
  EXPECT_EQ(no(ranges, Range{0, 2}), "must be [0, 1] or [-1, 1], got [0, 2]");
  EXPECT_EQ(no(ranges, Range{-1, 1}), "");
}

TEST(Limits, NoneAllowEverything) {
  const Limits none;
  EXPECT_EQ(none.text(), "");
  EXPECT_EQ(none.problem(INT64_MIN) + none.problem(1e300) + none.problem(std::string("x")) +
                none.problem(Range{5, 1}) + none.problem(true),
            "");
}

}  // namespace
}  // namespace lrnn
