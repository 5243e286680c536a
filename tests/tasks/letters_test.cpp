#include "tasks/letters.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tasks/automaton.h"
#include "tests/tasks/from_yaml.h"

namespace lrnn::tasks {
namespace {

TEST(Letters, OfACompiledGroupGoByCyclesAndNumbers) {
  const auto t = task("{name: automaton, group: S5, letters: '24,33'}");
  const Letters letters(*t);
  EXPECT_FALSE(letters.characters());
  for (const char* text : {"(12)", "(1 2)", "(2,1)", "24"}) EXPECT_EQ(letters.find(text), 0);
  for (const char* text : {"(12345)", "(34512)", "33"}) EXPECT_EQ(letters.find(text), 1);
  for (const char* text : {"e", "()", "0", "(13)", "(16)", "x"}) EXPECT_EQ(letters.find(text), -1);
  EXPECT_THROW(letters.find("(12)(23)"), Error);
  EXPECT_EQ(letters.some(), "(12) (12345)");
  EXPECT_EQ(t->elements()->of_token[0], 24);
  EXPECT_EQ(t->elements()->of_token[2], 0);  // the first state is the identity
}

TEST(Letters, OfTheGroupTaskTheSame) {
  const auto t = task("{name: group, group: S3}");
  const Letters letters(*t);
  EXPECT_EQ(letters.find("(1 2)"), 2);
  EXPECT_EQ(letters.find("2"), 2);
  EXPECT_EQ(letters.find("PAD"), -1);
  EXPECT_EQ(t->elements()->of_token[size_t(t->before_word()[0])], -1);
  const auto late = task("{name: group, group: S3_2_tokens_s_token}");
  EXPECT_EQ(Letters(*late).find("_"), 6);  // no element, but read
}

TEST(Letters, NeedSpacesWhereOneWayToWriteThemIsLonger) {
  const auto characters = [](const std::string& yaml) { return Letters(*task(yaml)).characters(); };
  EXPECT_TRUE(characters("{name: automaton, group: Z2}"));
  EXPECT_TRUE(characters("{name: automaton, group: Q8, letters: generators}"));    // i j, 2 4
  EXPECT_FALSE(characters("{name: automaton, group: D12, letters: generators}"));  // r s, 1 12
  EXPECT_FALSE(characters("{name: automaton, group: S3}"));
  EXPECT_TRUE(characters("{name: automaton, regex: '(ab)*', alphabet: ab}"));
}

constexpr const char* kJson =
    R"(automaton: '{"alphabet":["a"],"states":["p","q"],"start":"p","accept":["q"],)"
    R"("next":{"p":{"a":"q"},"q":{"a":"p"}}}')";

// Run folders from before the key was there hold JSON with accepting states and a model of states.
TEST(AutomatonTask, AnswersWithWhatItIsAskedFor) {
  const auto old = task(std::string("{name: automaton, ") + kJson + "}");
  EXPECT_EQ(old->vocabulary(), 3);
  EXPECT_EQ(old->empty_answer(), "p");
  const auto accept = task(std::string("{name: automaton, answers: accept, ") + kJson + "}");
  EXPECT_EQ(accept->empty_answer(), "reject");
  const std::string regex = "regex: 'a*b', alphabet: ab";
  EXPECT_EQ(task("{name: automaton, " + regex + "}")->empty_answer(), "reject");
  EXPECT_EQ(task("{name: automaton, answers: accept, " + regex + "}")->empty_answer(), "reject");
  EXPECT_EQ(task("{name: automaton, answers: states, " + regex + "}")->empty_answer(), "0");
  EXPECT_THROW(task("{name: automaton, answers: accept, group: S3}"), Error);
}

TEST(AutomatonTask, ConfigsOfSubjectsAreReadBack) {
  automata::Source source;
  source.has_regex = true, source.regex = "(ab)*", source.alphabet = "ab";
  auto subject = automata::load(source);
  for (const bool recogniser : {true, false}) {
    subject.recogniser = recogniser;
    const auto yaml = automaton_config(source, subject, 0);
    const auto again = subject_of(Section::from_text(yaml, "task"));
    EXPECT_EQ(again.recogniser, recogniser);
    EXPECT_EQ(again.automaton.next, subject.automaton.next);
  }
}

}  // namespace
}  // namespace lrnn::tasks
