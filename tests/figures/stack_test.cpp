#include <gtest/gtest.h>

#include "base/error.h"
#include "figures/draw.h"

namespace lrnn::figures {
namespace {

TEST(Stack, PutsFiguresBelowOneAnother) {
  EXPECT_EQ(stack({"<svg width=\"30\" height=\"10.5\"><g/></svg>\n",
                   "<svg width=\"20\" height=\"4\"></svg>\n"},
                  "a < b"),
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"30\" height=\"14.5\" "
            "viewBox=\"0 0 30 14.5\" role=\"img\">\n<title>a &lt; b</title>\n"
            "<svg y=\"0\" width=\"30\" height=\"10.5\"><g/></svg>\n"
            "<svg y=\"10.5\" width=\"20\" height=\"4\"></svg>\n</svg>\n");
}

TEST(Stack, TakesWhatTheChartsAre) {
  const auto chart = draw(LineChart{.title = "t", .series = {{"a", {{1, 2, 2, 2}}}}});
  const auto both = stack({chart, chart}, "t");
  EXPECT_EQ(both.size() > 2 * chart.size(), true);
  EXPECT_THROW(stack({"<g/>"}, "t"), Error);
}

}  // namespace
}  // namespace lrnn::figures
