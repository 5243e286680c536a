#include <gtest/gtest.h>

#include "base/config.h"
#include "cli/figures.h"
#include "figures/draw.h"
#include "tasks/task.h"

namespace lrnn::cli {
namespace {

const figures::Style kStyle = figures::style_of("mamba [0,1]");

std::string chart(int trained, int64_t longest, double chance) {
  const auto task = tasks::make(Section::from_text(
      cat("{name: parity, train: {length: [3, ", trained, "]}, eval: {length: [40, 256]}}"), "x"));
  const std::vector<experiments::LengthBin> bins = {{4, 4, {10, 10}, 0.9, 1},
                                                    {longest, longest, {6, 8}, 0.5, 1}};
  return length_chart("title", false, {{"model", &bins, chance, kStyle, task.get()}});
}

std::string drawn(int trained, std::vector<figures::Point> points, bool log_x) {
  return draw(
      figures::LineChart{.title = "title",
                         .x_label = "length of the sequence",
                         .y_label = "scaled accuracy",
                         .series = {{"model", std::move(points), kStyle}},
                         .markers = {{double(trained), cat("longest in training: ", trained)}},
                         .y = {{0, 1}},
                         .log_x = log_x});
}

TEST(LengthChart, ShowsScaledAccuracyAndWhereTrainingEnds) {
  EXPECT_EQ(chart(40, 256, 0.5), drawn(40, {{4, 1, 0.8, 1}, {256, 0.5, 0, 1}}, false));
  EXPECT_EQ(chart(40, 256, 0), drawn(40, {{4, 1, 0.9, 1}, {256, 0.75, 0.5, 1}}, false));
}

TEST(LengthChart, IsLogarithmicWhereTrainingWouldBeASliver) {
  const std::vector<figures::Point> at160 = {{4, 1, 0.9, 1}, {160, 0.75, 0.5, 1}},
                                    at161 = {{4, 1, 0.9, 1}, {161, 0.75, 0.5, 1}};
  EXPECT_EQ(chart(10, 160, 0), drawn(10, at160, false));
  EXPECT_EQ(chart(10, 161, 0), drawn(10, at161, true));
}

}  // namespace
}  // namespace lrnn::cli
