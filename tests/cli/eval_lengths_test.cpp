#include <gtest/gtest.h>

#include "cli/eval.h"
#include "tests/experiments/folder.h"

namespace lrnn::cli {
namespace {

TEST(EvalLengths, ARangeAListOrOne) {
  for (const char* text : {"3:10", "3-10", "03:10"}) {
    EXPECT_EQ(parse_lengths(text).range, (Range{3, 10})) << text;
    EXPECT_TRUE(parse_lengths(text).each.empty()) << text;
  }
  EXPECT_EQ(parse_lengths("7").range, (Range{7, 7}));
  EXPECT_EQ(parse_lengths("3,10").each, (std::vector<int64_t>{3, 10}));
  EXPECT_EQ(parse_lengths("100,3,10,3").each, (std::vector<int64_t>{3, 10, 100}));
  EXPECT_EQ(parse_lengths("5,5").range, (Range{5, 5}));
  EXPECT_TRUE(parse_lengths("3,10").given() && parse_lengths("3").given());
  EXPECT_FALSE(Lengths{}.given());
}

TEST(EvalLengths, NothingElse) {
  for (const char* text : {"",
                           "x",
                           "0",
                           "0:4",
                           "10:3",
                           "10-3",
                           "3:",
                           ":3",
                           "-3",
                           "3-",
                           "4..9",
                           "4;9",
                           "3:10x",
                           "3x",
                           "3,,4",
                           ",3",
                           "3,",
                           "3:4:5",
                           "3-4-5",
                           "3:10,20",
                           "3,5:9",
                           " 3",
                           "+3",
                           "3.5",
                           "3e2",
                           "1 2",
                           "100000001",
                           "99999999999999999999",
                           "3:99999999999999999999",
                           "3,99999999999999999999"}) {
    const auto said = error_of([&] { parse_lengths(text); });
    EXPECT_HAS(said, "--lengths must be LOW:HIGH") << text;
    EXPECT_HAS(said, cat("'", text, "'")) << text;
    EXPECT_HAS(said, "--lengths 10,100,1000") << "a hint for " << text;
  }
}

TEST(EvalLengths, InWords) {
  EXPECT_EQ(in_words(parse_lengths("3:10")), "3 to 10");
  EXPECT_EQ(in_words(parse_lengths("7")), "7");
  EXPECT_EQ(in_words(parse_lengths("3,10")), "3 and 10");
  EXPECT_EQ(in_words(parse_lengths("3,10,100")), "3, 10 and 100");
}

}  // namespace
}  // namespace lrnn::cli
