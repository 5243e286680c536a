#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "cli/doctor.h"
#include "ops/every_op.h"

namespace lrnn::cli {
namespace {

TEST(Chance, SizesReachBothEndsAndStayBetween) {
  ops::Chance chance(3);
  std::set<int64_t> sizes;
  for (int i = 0; i < 9000; ++i) sizes.insert(chance.size(70));
  EXPECT_EQ(*sizes.begin(), 1);
  EXPECT_EQ(*sizes.rbegin(), 70);
  for (const int64_t at : {31, 32, 33, 63, 64, 65}) EXPECT_EQ(sizes.count(at), 1u) << at;
}

TEST(Chance, CutsIntoWhatItWasGiven) {
  ops::Chance chance(4);
  bool empty = false;
  for (const int64_t total : {1, 2, 50, 200}) {
    const auto lengths = chance.cut(total);
    EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), int64_t(0)), total);
    for (const int64_t n : lengths) empty = empty || n == 0;
  }
  EXPECT_TRUE(empty);
}

// Seeds are all that a report names, so they must bring a case back.
TEST(RandomChecks, ASeedIsACase) {
  std::set<std::string> ops, types;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const auto once = check_at_random(seed, "cpu");
    EXPECT_TRUE(once.check.ok()) << once.check.op << " " << once.shape << " seed " << seed;
    ops.insert(once.check.op), types.insert(once.check.dtype);
    if (seed > 3) continue;
    const auto again = check_at_random(seed, "cpu");
    EXPECT_EQ(once.check.op + once.shape + once.check.dtype,
              again.check.op + again.shape + again.check.dtype);
    EXPECT_EQ(once.check.results, again.check.results);
    EXPECT_EQ(once.check.gradients, again.check.gradients);
  }
  EXPECT_GT(ops.size(), 3u);
  EXPECT_GT(types.size(), 1u);
}

// What is not a number in the op and is one in the definition is off, whatever the rest.
TEST(RandomChecks, ANumberThatIsNoneIsOff) {
  const auto one = [](double y) {
    return ops::TensorFunction([y](const ops::Tensors& in) -> ops::Tensors {
      return {{"out y", in.at("x") * y}};
    });
  };
  const auto off = [&](double got, double want) {
    const auto x = torch::ones({2}, torch::kFloat64);
    return ops::agreement({{{"x", x}}, one(got), one(want), "out y"}, torch::kCPU);
  };
  EXPECT_TRUE(off(2, 2).within(0));
  EXPECT_TRUE(off(HUGE_VAL, HUGE_VAL).within(0));  // the same infinity
  EXPECT_FALSE(off(HUGE_VAL, 2).within(1));
  EXPECT_FALSE(off(-HUGE_VAL, HUGE_VAL).within(1));
  EXPECT_FALSE(off(NAN, 2).within(1));
}

}  // namespace
}  // namespace lrnn::cli
