#include "figures/svg.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/figures/xml.h"

namespace lrnn::figures {
namespace {

TEST(Escape, LeavesNothingThatXmlWouldRead) {
  EXPECT_EQ(escape("a<b & \"c\" > 'd'"), "a&lt;b &amp; &quot;c&quot; &gt; &#39;d&#39;");
  EXPECT_EQ(escape("β ≥ 2"), "β ≥ 2");
  // Control characters, a cut-off letter, a lone continuation byte and an overlong slash.
  EXPECT_EQ(escape(std::string("\x01\x1b") + "x\x7f"), "??x?");
  EXPECT_EQ(escape("\xce"), "?");
  EXPECT_EQ(escape("\x80\xc0\xaf"), "???");
  // Half of a surrogate pair, and a number beyond Unicode: XML has neither.
  EXPECT_EQ(escape("\xed\xa0\x80"), "???");
  EXPECT_EQ(escape("\xf4\x90\x80\x80"), "????");
}

TEST(Number, IsAlwaysANumber) {
  EXPECT_EQ(number(1.5), "1.5");
  EXPECT_EQ(number(-0.001), "0");
  EXPECT_EQ(number(100), "100");
  EXPECT_EQ(number(std::nan("")), "0");
  EXPECT_EQ(number(std::numeric_limits<double>::infinity()), "0");
}

TEST(Svg, IsWellFormedWhateverTheTextIs) {
  Svg svg(100, 50, "a < b & c");
  svg.text(1, 2, "<script>&\xff", Anchor::kMiddle, 12, true, true);
  svg.heading(1, 2, "\"quoted\"");
  for (size_t i = 0; i < 9; ++i) svg.mark(double(i), std::nan(""), style(i));
  for (size_t i = 0; i < 9; ++i) svg.mark(double(i), 1, published(style(i)));
  svg.polyline({{0, 1}, {2, 3}}, style(1));
  svg.band({{0, 1}, {2, 3}, {4, 5}}, style(2));
  EXPECT_EQ(xml_problem(svg.str()), "");
}

TEST(Xml, TheCheckerItselfCanFail) {
  EXPECT_NE(xml_problem("<a><b></a>"), "");
  EXPECT_NE(xml_problem("<a>x & y</a>"), "");
  EXPECT_NE(xml_problem("<a b=c/>"), "");
  EXPECT_NE(xml_problem("<a b=\"nan\"/>"), "");
  EXPECT_NE(xml_problem("<a/><b>"), "");
}

}  // namespace
}  // namespace lrnn::figures
