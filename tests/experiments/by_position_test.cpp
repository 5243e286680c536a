#include "experiments/by_position.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/experiments/folder.h"

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

TEST(ByPosition, IsReadBack) {
  TemporaryFolder at;
  EXPECT_HAS(error_of([&] { read_positions(at / "run"); }), "no losses by position yet");
  std::filesystem::create_directories(at / "run/eval");
  const auto file = at / "run/eval/position.csv";
  write(file, std::string(kPositionColumns) +
                  "\npython,1,4.5,4.25,90.5,0.125,50\npython,64,2.5,2.75,30.5,0.5,50\n"
                  "math,1,3.5,3.25,33.5,0.25,49\n");
  const auto curves = read_positions(at / "run");
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves[1].name, "math");
  ASSERT_EQ(curves[0].rows.size(), 2u);
  EXPECT_EQ(curves[0].rows[1].position, 64);
  EXPECT_DOUBLE_EQ(curves[0].rows[1].smoothed, 2.75);
  EXPECT_EQ(curves[1].rows[0].sequences, 49);
  write(file, std::string(kPositionColumns) + "\npython,1,4.5,4.2");
  EXPECT_HAS(error_of([&] { read_positions(at / "run"); }), "line 2 is damaged");
  write(file, "position,loss\n1,2\n");
  EXPECT_HAS(error_of([&] { read_positions(at / "run"); }), "begins with");
}

}  // namespace
}  // namespace lrnn::experiments
