#include "figures/table.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "figures/page.h"
#include "tests/figures/xml.h"

namespace lrnn::figures {
namespace {

Table example() {
  Table table({"model", "β"});
  table.row({"a, \"b\" <c>", "1.5"});
  table.row({"größer", "10"});
  return table;
}

TEST(Table, AlignsLettersNotBytes) {
  EXPECT_EQ(example().text(),
            "model         β\n"
            "──────────  ───\n"
            "a, \"b\" <c>  1.5\n"
            "größer       10\n");
}

TEST(Table, QuotesInCsv) {
  EXPECT_EQ(example().csv(), "model,β\n\"a, \"\"b\"\" <c>\",1.5\ngrößer,10\n");
}

TEST(Table, IsMarkdown) {
  Table table({"a|b", "n"});
  table.row({"x", "1"});
  EXPECT_EQ(table.markdown(), "| a\\|b | n |\n| --- | ---: |\n| x | 1 |\n");
}

TEST(Table, EscapesInHtml) {
  EXPECT_EQ(xml_problem(example().html()), "");
  EXPECT_NE(example().html().find("&lt;c&gt;"), std::string::npos);
}

TEST(Table, RefusesARaggedRow) { EXPECT_THROW(example().row({"one"}), Error); }

TEST(Page, IsSelfContained) {
  Page page("a < b");
  page.heading("<h>");
  page.paragraph("x & y");
  page.note("n");
  page.html(example().html());
  page.figure("<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>", "caption <1>");
  const auto html = page.str();
  EXPECT_EQ(html.find("src="), std::string::npos);
  EXPECT_EQ(html.find("href="), std::string::npos);
  EXPECT_EQ(html.find("@import"), std::string::npos);
  EXPECT_NE(html.find("a &lt; b"), std::string::npos);
  EXPECT_NE(html.find("caption &lt;1&gt;"), std::string::npos);
  EXPECT_NE(html.find("x &amp; y"), std::string::npos);
  EXPECT_NE(html.find("&lt;h&gt;"), std::string::npos);
}

}  // namespace
}  // namespace lrnn::figures
