#include <gtest/gtest.h>

#include "automata/algebra/group.h"
#include "automata/algebra/permutation.h"
#include "automata/read/source.h"
#include "base/error.h"

namespace lrnn::automata {
namespace {

Permutation permutation(const std::string& text, int points) {
  return find_permutation(text, points).value();
}

std::string problem(const std::string& text) {
  try {
    find_permutation(text, 9);
    return "no error";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Cycles, AreReadAsPeopleWriteThem) {
  const Permutation want = {1, 0, 3, 2};
  for (const char* text : {"(12)(34)", "(1 2)(3 4)", "(1,2)(3,4)", "( 2 1 ) (43)", "(34)(12)"})
    EXPECT_EQ(permutation(text, 4), want) << text;
  EXPECT_EQ(permutation("(123)", 3), (Permutation{1, 2, 0}));
  EXPECT_EQ(permutation("()", 2), (Permutation{0, 1}));
  EXPECT_EQ(permutation("(1)", 2), (Permutation{0, 1}));
  EXPECT_EQ(permutation("(1 10)", 10)[0], 9);
  EXPECT_FALSE(find_permutation("(14)", 3));
  EXPECT_FALSE(find_permutation("14", 4));
}

TEST(Cycles, MistakesAreNamed) {
  EXPECT_EQ(problem("(12)(23)"), "'(12)(23)' is not a permutation: 2 comes twice");
  EXPECT_EQ(problem("(12"), "'(12' is not a permutation: '(' is never closed");
  EXPECT_EQ(problem("(1x)"), "'(1x)' is not a permutation: 'x' is no point");
  EXPECT_EQ(problem("(10)"), "'(10)' is not a permutation: points are 1 .. 64");
  EXPECT_EQ(problem("(12)e"), "'(12)e' is not a permutation: 'e' is not expected");
}

TEST(Cycles, ListsAreSplitOutsideBrackets) {
  using List = std::vector<std::string>;
  EXPECT_EQ(outer_list("(1,2), [e,4],5"), (List{"(1,2)", "[e,4]", "5"}));
  EXPECT_EQ(outer_list("1"), (List{"1"}));
  EXPECT_EQ(outer_list("(12"), (List{"(12"}));
}

// The ids of the published tasks: lexicographic order of one-line notation.
TEST(Group, ElementsHaveThreeNames) {
  const Group s5("S5");
  const std::vector<std::tuple<int64_t, std::string, std::string>> key = {
      {0, "e", "1 2 3 4 5"},        {1, "(45)", "1 2 3 5 4"},       {24, "(12)", "2 1 3 4 5"},
      {33, "(12345)", "2 3 4 5 1"}, {119, "(15)(24)", "5 4 3 2 1"},
  };
  for (const auto& [id, cycles, line] : key) {
    EXPECT_EQ(s5.element(id), cycles);
    EXPECT_EQ(s5.one_line(id), line);
    EXPECT_EQ(s5.find(cycles), id);
    EXPECT_EQ(s5.find(std::to_string(id)), id);
  }
  EXPECT_EQ(s5.find("(5 1)(4 2)"), 119);
  EXPECT_EQ(s5.find("()"), 0);
  for (const char* none : {"(16)", "120", "-1", "swap", "", "99999999999999999999"})
    EXPECT_EQ(s5.find(none), -1) << none;
  EXPECT_THROW(s5.find("(12)(23)"), Error);
}

TEST(Group, EveryElementIsFoundByItsName) {
  for (const char* name :
       {"S4", "A5", "Z12", "D4", "Q8", "A4_x_Z5", "S3_x_Z2_x_D4", "(123),(345)", "(1 2 10)"}) {
    const Group g(name);
    for (int64_t a = 0; a < g.order(); ++a) {
      ASSERT_EQ(g.find(g.element(a)), a) << name << " " << g.element(a);
      ASSERT_EQ(g.find(std::to_string(a)), a) << name;
    }
    EXPECT_EQ(g.find("e"), 0) << name;
    EXPECT_EQ(g.find("()"), 0) << name;
  }
  EXPECT_EQ(Group("A4").find("(12)"), -1);  // it is odd
  EXPECT_EQ(Group("(123)").find("(12)"), -1);
  EXPECT_EQ(Group("A4_x_Z5").find("[(1 2 3), 4]"), Group("A4_x_Z5").find("[(123),4]"));
  EXPECT_EQ(Group("A4_x_Z5").find("[(12),4]"), -1);
}

TEST(Source, GroupsAreNamedByTheirElements) {
  Source source;
  source.group = "S5", source.letters = "(1 2),(12345)";
  const auto s = load(source);
  EXPECT_EQ(s.automaton.symbol_names, (std::vector<std::string>{"(12)", "(12345)"}));
  ASSERT_TRUE(s.group);
  EXPECT_EQ(s.automaton.state_name(s.automaton.read({0, 0})), "e");
  source.letters = "24,33";
  EXPECT_EQ(load(source).automaton.symbol_names, s.automaton.symbol_names);
  EXPECT_EQ(load(source).automaton.next, s.automaton.next);
  source.letters = "(12),24";
  EXPECT_THROW(load(source), Error);  // the same twice
  source.letters = "(16)";
  EXPECT_THROW(load(source), Error);
}

}  // namespace
}  // namespace lrnn::automata
