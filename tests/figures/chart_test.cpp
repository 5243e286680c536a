#include "figures/chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "figures/draw.h"
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

// The points of the polylines of that colour, the legend's left out.
std::vector<std::string> drawn_lines(const std::string& svg, const std::string& colour) {
  std::vector<std::string> out;
  const std::string begin = "<polyline points=\"";
  for (size_t at = svg.find(begin); at != std::string::npos; at = svg.find(begin, at + 1)) {
    const auto tag = svg.substr(at, svg.find("/>", at) - at);
    if (tag.find("stroke=\"" + colour + "\"") != std::string::npos)
      out.push_back(tag.substr(begin.size(), tag.find('"', begin.size()) - begin.size()));
  }
  if (!out.empty()) out.erase(out.begin());
  return out;
}

Series level(const std::string& name, const std::string& key, double from, double to) {
  Series out{name, {}, style_of(key)};
  for (const double x : {0.0, 50.0, 100.0})
    out.points.push_back({x, x < 60 ? from : to, x < 60 ? from : to, x < 60 ? from : to});
  return out;
}

TEST(LineChart, ASeriesKeepsItsStyleWhereverItStands) {
  const auto mamba = level("Mamba", "mamba [-1,1]", 1, 0), other = level("x", "slstm", 0.3, 0.7);
  for (const auto& series : {std::vector<Series>{mamba, other}, {other, mamba}, {mamba}}) {
    const auto svg = draw(LineChart{.title = "t", .series = series});
    EXPECT_EQ(drawn_lines(svg, style_of("mamba").colour).size(), 1u);
  }
}

TEST(LineChart, EqualLinesAreDrawnSideBySide) {
  const auto one = level("a", "mamba", 1, 1), two = level("b", "slstm", 1, 1),
             falls = level("c", "delta_net", 1, 0);
  const auto svg = draw(LineChart{.title = "t", .series = {one, two, falls}, .y = {{0, 1}}});
  const auto a = drawn_lines(svg, style_of("mamba").colour),
             b = drawn_lines(svg, style_of("slstm").colour);
  ASSERT_EQ(a.size(), 1u);
  ASSERT_EQ(b.size(), 1u);
  EXPECT_NE(a[0], b[0]);
  EXPECT_NE(svg.find("equal lines are drawn side by side"), std::string::npos);
  EXPECT_EQ(xml_problem(svg), "");
  const auto alone = draw(LineChart{.title = "t", .series = {one, falls}, .y = {{0, 1}}});
  EXPECT_NE(drawn_lines(alone, style_of("mamba").colour)[0], a[0])
      << "two lie closer together than three";
}

TEST(Apart, MovesOnlyWhatIsHidden) {
  const Line level = {{{0, 10}, {100, 10}, {200, 10}}}, falls = {{{0, 10}, {100, 10}, {200, 90}}},
             crosses = {{{0, 0}, {200, 20}}}, elsewhere = {{{0, 50}, {200, 50}}};
  const auto moved = shifts({level, falls, crosses, elsewhere});
  EXPECT_LT(moved[0][0][0], 0);
  EXPECT_GT(moved[1][0][0], 0);
  EXPECT_EQ(moved[0][0][2], 0);
  EXPECT_EQ(moved[1][0][2], 0);
  EXPECT_EQ(moved[2], (std::vector<std::vector<double>>{{0, 0}}));
  EXPECT_EQ(moved[3], (std::vector<std::vector<double>>{{0, 0}}));
  const auto points = shifts({{{{5, 5}}}, {{{5, 5}}}});  // of lines with one point
  EXPECT_NE(points[0][0][0], points[1][0][0]);
  const auto many = shifts(std::vector<Line>(9, level));
  EXPECT_LE(many[8][0][0] - many[0][0][0], 10.01) << "however many there are";
}

TEST(Apart, ReadsALineBetweenItsPoints) {
  const Line line = {{{0, 0}, {10, 20}}, {{30, 5}}};
  EXPECT_EQ(height_at(line, 5), 10);
  EXPECT_EQ(height_at(line, 10), 20);
  EXPECT_EQ(height_at(line, 30), 5);
  EXPECT_FALSE(height_at(line, 20));
}

TEST(Spectrum, LettersHaveTheirOwnColoursAndALegend) {
  const std::vector<Letter> letters = {{"at 24", style(0)}, {"at 33", style(1)}};
  const auto planes =
      draw(Planes{"t", letters, {{"head", {{{-1, 0}, 0}, {{-0.8, 0.6}, 1}, {{-0.8, -0.6}, 1}}}}});
  const auto strips =
      draw(Strips{"t", "x", letters, {{"head", {{0.5, 0, 0, 0}, {0.25, 0, 0.25, 0}}}}});
  for (const auto& svg : {planes, strips}) {
    EXPECT_EQ(xml_problem(svg), "");
    for (const auto& [name, look] : letters) {
      EXPECT_NE(svg.find(name), std::string::npos);
      EXPECT_NE(svg.find(look.colour), std::string::npos);
    }
  }
  const auto count = [](const std::string& svg, const std::string& what) {
    size_t out = 0;
    for (size_t at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1)) ++out;
    return out;
  };
  EXPECT_EQ(count(planes, std::string("fill=\"") + style(1).colour), 3u) << "two dots, one legend";
  EXPECT_EQ(count(strips, std::string("fill=\"") + style(1).colour), 3u) << "two bars, one legend";
}

TEST(Spectrum, SharesAddUpAndEndsBelong) {
  const auto s = shares({-1, 1, 1.0000001, 0, kNan}, 4);
  EXPECT_EQ(s, (std::vector<double>{0.25, 0, 0.25, 0.5}));
  EXPECT_EQ(shares({}, 3), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(shares({-1, 1}, 2, 8), (std::vector<double>{0.125, 0.125})) << "of eight in all";
  EXPECT_EQ(bars({0, 1, 0.0001}), "·█▁");
  EXPECT_EQ(bars({}), "");
}

TEST(Spectrum, IsWellFormed) {
  EXPECT_EQ(xml_problem(draw(Strips{})), "");
  EXPECT_EQ(xml_problem(draw(Strips{"t", "x", {}, {{"layer 1 & 2", {{0, 0.5, kNan, 0.5}}}}})), "");
  EXPECT_EQ(xml_problem(draw(Planes{})), "");
  EXPECT_EQ(xml_problem(draw(Planes{"t", {}, {{"<a>", {{{0.5, -0.5}}, {{kNan, 0}}}}, {"b", {}}}})),
            "");
}

}  // namespace
}  // namespace lrnn::figures
