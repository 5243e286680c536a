#include "experiments/by_position.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lrnn::experiments {
namespace {

// Three sequences of five positions, worked out by hand.
TEST(ByPosition, AHandExample) {
  ByPosition all(3);
  const std::vector<std::vector<float>> losses = {
      {1, 2, 3, 4, 0}, {3, 2, 1, 0, 0}, {2, 2, 5, 2, 0}};
  for (const auto& loss : losses) {
    tasks::Example e;
    e.input.assign(5, 0), e.target = {1, 1, 1, 1, -1};
    all.add(e, {loss, {1, 0, 0, 1, 0}});
  }
  const auto rows = all.rows();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].position, 1);
  EXPECT_EQ(rows[2].sequences, 3);
  EXPECT_DOUBLE_EQ(rows[2].loss, 3);
  EXPECT_DOUBLE_EQ(rows[0].smoothed, 2);  // nothing on its left: itself
  EXPECT_DOUBLE_EQ(rows[2].smoothed, (2 + 3 + 2) / 3.0);
  EXPECT_NEAR(rows[2].running, std::exp((2.0 + 2.0 + 3.0) / 3), 1e-9);
  EXPECT_NEAR(rows[3].running, std::exp((10 / 4.0 + 6 / 4.0 + 11 / 4.0) / 3), 1e-9);
  EXPECT_DOUBLE_EQ(rows[0].accuracy, 1);
  EXPECT_DOUBLE_EQ(rows[1].accuracy, 0);
  // Moving means of the three at position 3: 3, 1, 3.
  EXPECT_NEAR(rows[2].error, std::sqrt((9 + 1 + 9) / 3.0 - std::pow(7.0 / 3, 2)) / std::sqrt(2),
              1e-6);
}

}  // namespace
}  // namespace lrnn::experiments
