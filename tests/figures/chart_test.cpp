#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "figures/axis.h"
#include "figures/line_chart.h"
#include "figures/spectrum.h"
#include "tests/figures/xml.h"

namespace lrnn::figures {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Ticks, AreRoundInsideAndFew) {
  for (const double lo : {-1e3, -3.7, 0.0, 0.013, 5.0})
    for (const double size : {1e-4, 0.3, 1.0, 7.0, 1e5}) {
      const auto found = ticks(lo, lo + size, 5);
      ASSERT_GE(found.size(), 2u) << lo << " " << size;
      EXPECT_LE(found.size(), 8u) << lo << " " << size;
      const double step = found[1].at - found[0].at;
      const double digit = step / std::pow(10, std::floor(std::log10(step * 1.001)));
      EXPECT_NEAR(std::min({std::abs(digit - 1), std::abs(digit - 2), std::abs(digit - 5)}), 0,
                  1e-3)
          << step;
      for (const auto& t : found) {
        EXPECT_GE(t.at, lo - 1e-6 * size);
        EXPECT_LE(t.at, lo + size + 1e-6 * size);
        EXPECT_NEAR(std::stod(t.label), t.at, 1e-3 * step + 1e-12);
      }
    }
}

TEST(Ticks, SurviveAnEmptyRange) {
  for (const double at : {0.0, 1.0, -4e7, kNan}) EXPECT_GE(ticks(at, at, 5).size(), 2u) << at;
  EXPECT_GE(ticks(2, 1, 5).size(), 2u);
}

TEST(Ticks, LogarithmicOnesArePowersOfTwo) {
  const auto found = log_ticks(3, 1024, 8);
  ASSERT_FALSE(found.empty());
  EXPECT_LE(found.size(), 9u);
  for (const auto& t : found) EXPECT_EQ(std::exp2(std::round(std::log2(t.at))), t.at);
}

TEST(LineChart, EveryInputGivesWellFormedXml) {
  std::vector<LineChart> charts(1);  // the first one is empty
  charts.push_back({.title = "one point",
                    .series = {{"a & b", {{40, 0.5, 0.4, 0.6}}}},
                    .markers = {{40, "<here>"}}});
  charts.push_back({.title = "gaps",
                    .series = {{"a", {{1, 0, 0, 0}, {2, kNan, kNan, kNan}, {3, 1, kNan, kNan}}},
                               {"only nan", {{kNan, kNan, kNan, kNan}}}}});
  charts.push_back({.title = "log",
                    .series = {{"a", {{0, 1, 1, 1}, {8, 1, 1, 1}}}},
                    .markers = {{0, "zero"}},
                    .log_x = true});
  LineChart many{.title = "many"};
  for (int i = 0; i < 20; ++i)
    many.series.push_back({"a series with a long name", {{0, double(i), 0, 0}, {1, 2, 0, 0}}});
  charts.push_back(many);
  for (const auto& chart : charts) EXPECT_EQ(xml_problem(draw(chart)), "") << chart.title;
}

TEST(LineChart, ShowsASinglePoint) {
  const auto svg = draw(LineChart{.title = "t", .series = {{"a", {{40, 0.5, 0.5, 0.5}}}}});
  // The legend has one mark, the plot the other.
  size_t marks = 0;
  for (size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1))
    ++marks;
  EXPECT_EQ(marks, 2u);
}

TEST(Spectrum, SharesAddUpAndEndsBelong) {
  const auto s = shares({-1, 1, 1.0000001, 0, kNan}, 4);
  EXPECT_EQ(s, (std::vector<double>{0.25, 0, 0.25, 0.5}));
  EXPECT_EQ(shares({}, 3), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(bars({0, 1, 0.0001}), "·█▁");
  EXPECT_EQ(bars({}), "");
}

TEST(Spectrum, IsWellFormed) {
  EXPECT_EQ(xml_problem(draw(Strips{})), "");
  EXPECT_EQ(xml_problem(draw(Strips{"t", "x", {{"layer 1 & 2", {0, 0.5, kNan, 0.5}}}})), "");
  EXPECT_EQ(xml_problem(draw(Planes{})), "");
  EXPECT_EQ(xml_problem(draw(Planes{"t", {{"<a>", {{0.5, -0.5}, {kNan, 0}}}, {"b", {}}}})), "");
}

}  // namespace
}  // namespace lrnn::figures
