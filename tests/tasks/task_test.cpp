#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/tasks/from_yaml.h"

namespace lrnn::tasks {
namespace {

std::string error_of_config(const std::string& yaml) {
  return error_of(Section::from_text(yaml, "x.yaml").child("task"));
}

bool operator==(const Example& a, const Example& b) {
  return a.input == b.input && a.target == b.target && a.length == b.length;
}

// What every task promises, for each one with its published settings.
class Every : public testing::TestWithParam<Entry> {
 protected:
  Section section = Section::from_text(std::string("name: ") + GetParam().name);
  TaskPtr task = make(section);
};

TEST_P(Every, IsAPureFunction) {
  std::vector<Example> forward;
  for (uint64_t i = 0; i < 50; ++i) forward.push_back(task->sample(3, Split::kTrain, i));
  const auto again = make(section);
  for (uint64_t i = 50; i-- > 0;) {
    again->sample(i, Split::kEval, 7 * i);
    EXPECT_TRUE(again->sample(3, Split::kTrain, i) == forward[i]) << i;
  }
}

TEST_P(Every, SplitsAndSeedsDiffer) {
  const Range length = task->length(Split::kEval);
  int same = 0;
  for (uint64_t i = 0; i < 50; ++i) {
    const auto a = task->sample(1, Split::kEval, i, length);
    for (const auto& b :
         {task->sample(1, Split::kTrain, i, length), task->sample(2, Split::kEval, i, length),
          task->sample(1, Split::kEval, i + 1, length)})
      same += a.input == b.input;
  }
  EXPECT_EQ(same, 0);
}

// Whoever runs a model on words of his own is told the truth about the task.
TEST_P(Every, ItsAutomatonGivesTheTargets) {
  const auto own = task->followed();
  const auto letters = task->letters();
  if (!own) return;
  ASSERT_EQ(own->automaton.symbols, int64_t(letters.size()));
  ASSERT_EQ(own->automaton.states, int64_t(own->answer.size()));
  const auto before = task->before_word();
  for (const auto split : {Split::kTrain, Split::kEval})
    for (uint64_t i = 0; i < 100; ++i) {
      const auto e = task->sample(5, split, i);
      ASSERT_TRUE(std::equal(before.begin(), before.end(), e.input.begin()));
      int64_t state = own->automaton.start;
      for (size_t t = before.size(); t < e.input.size(); ++t) {
        const auto at = std::find(letters.begin(), letters.end(), e.input[t]);
        ASSERT_NE(at, letters.end()) << task->word(e.input[t]);
        state = own->automaton.step(state, at - letters.begin());
        EXPECT_EQ(own->automaton.symbol_name(at - letters.begin()), task->word(e.input[t]));
        if (e.target[t] >= 0) {
          EXPECT_EQ(own->answer[size_t(state)], e.target[t]) << t;
        }
      }
    }
}

TEST(Words, AreMadeOfTheLettersThatAreDrawn) {
  const auto swaps = task("{name: group, group: S3_only_swaps}");
  EXPECT_EQ(swaps->letters(), (std::vector<int64_t>{0, 1, 2, 5}));
  ASSERT_TRUE(swaps->followed());
  EXPECT_EQ(swaps->followed()->automaton.states, 6);
  EXPECT_EQ(task("{name: parity}")->empty_answer(), "0");
  EXPECT_FALSE(task("{name: group, group: S3_2_tokens}")->followed());
}

TEST_P(Every, ExamplesAreWellFormed) {
  for (const auto split : {Split::kTrain, Split::kEval})
    for (uint64_t i = 0; i < 200; ++i) {
      const auto e = task->sample(5, split, i);
      ASSERT_EQ(e.input.size(), e.target.size());
      ASSERT_FALSE(e.input.empty());
      ASSERT_GE(e.target.back(), 0) << "nothing is stored after the last answer";
      for (const int64_t token : e.input) {
        ASSERT_GE(token, 0);
        ASSERT_LT(token, task->vocabulary());
      }
      for (const int64_t token : e.target) ASSERT_LT(token, task->vocabulary());
      const auto answers =
          std::count_if(e.target.begin(), e.target.end(), [](int64_t token) { return token >= 0; });
      ASSERT_GE(answers, 1);
      ASSERT_TRUE(task->score() != Score::kAnswer || answers == 1);
      ASSERT_NE(task->text(e).find(" -> "), std::string::npos);
    }
}

TEST_P(Every, ResolvesToItself) {
  const auto resolved = GetParam().resolve(section);
  const auto again = Section::from_text(YAML::Dump(resolved));
  EXPECT_TRUE(differences(resolved, GetParam().resolve(again)).empty());
  EXPECT_EQ(resolved["name"].Scalar(), GetParam().name);
  EXPECT_TRUE(make(again)->sample(1, Split::kTrain, 0) == task->sample(1, Split::kTrain, 0));
  EXPECT_NE(help(GetParam().keys()).find("eval.samples"), std::string::npos);
}

TEST_P(Every, RefusesImpossibleLengths) {
  const std::string name = std::string("task:\n  name: ") + GetParam().name + "\n";
  EXPECT_EQ(error_of_config(name + "  train: {length: [9, 8]}\n"),
            "x.yaml:3: task.train.length must be [low, high] with low <= high, got [9, 8] | ");
  EXPECT_EQ(error_of_config(name + "  eval:\n    length: 0\n")
                .rfind("x.yaml:4: task.eval.length must be "
                       "at least ",
                       0),
            0u);
  EXPECT_EQ(error_of_config(name + "  eval: {length: 1000000000}\n"),
            "x.yaml:3: task.eval.length must be at most 100000000, got 1000000000 | ");
  EXPECT_EQ(error_of_config(name + "  eval: {samples: 0}\n"),
            "x.yaml:3: task.eval.samples must be at least 1, got 0 | ");
  EXPECT_EQ(error_of_config(name + "  eval: {length: many}\n"),
            "x.yaml:3: task.eval.length must be [low, high] or one whole number, got 'many' | ");
  EXPECT_NE(error_of_config(name + "  lenght: 3\n").find("x.yaml:3: task.lenght is not a key"),
            std::string::npos);
  EXPECT_THROW(task->sample(1, Split::kEval, 0, {0, 5}), Error);
  EXPECT_THROW(task->sample(1, Split::kEval, 0, {6, 5}), Error);
}

// Texts need data, and evaluation reads the same whatever the seed: text_test.cpp.
std::vector<Entry> without_data() {
  std::vector<Entry> out = all();
  std::erase_if(out, [](const Entry& entry) { return entry.name == std::string("text"); });
  return out;
}

INSTANTIATE_TEST_SUITE_P(Tasks, Every, testing::ValuesIn(without_data()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Find, NamesTheTasksThereAre) {
  std::string hint = " | the tasks are:";
  for (const auto& entry : all()) hint += std::string(" ") + entry.name;
  EXPECT_EQ(error_of_config("task: {name: chessboard}\n"),
            "x.yaml:1: task.name names no task: 'chessboard'" + hint);
  const std::string meant = "did you mean 'even_pairs'? " + hint.substr(3);
  for (const char* name : {"evenpairs", "EvenPairs", "even-pairs", "even_paris"})
    EXPECT_EQ(error_of_config(cat("task: {name: ", name, "}\n")),
              cat("x.yaml:1: task.name names no task: '", name, "' | ", meant));
  EXPECT_EQ(error_of_config("task: {}\n"), "x.yaml:1: task.name is missing" + hint);
  EXPECT_EQ(error_of_config("task: {name: [1]}\n"),
            "x.yaml:1: task.name must be a word, got '[1]'" + hint);
}

TEST(Length, OneNumberIsARange) {
  const auto t = task("name: parity\ntrain: {length: 7}\n");
  EXPECT_EQ(t->length(Split::kTrain), (Range{7, 7}));
  EXPECT_EQ(t->length(Split::kEval), (Range{40, 256}));
  for (uint64_t i = 0; i < 20; ++i) EXPECT_EQ(t->sample(1, Split::kTrain, i).length, 7);
}

}  // namespace
}  // namespace lrnn::tasks
