#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "tasks/task.h"

// cycle_navigation, even_pairs and cups, read from the printed words by somebody who has never
// seen their automata.
namespace lrnn::tasks {
namespace {

TaskPtr walk(const std::string& yaml) { return make(Section::from_text(yaml)); }

std::vector<std::string> words_before_arrow(const std::string& text) {
  std::istringstream in(text.substr(0, text.find("->")));
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}
std::string after_arrow(const std::string& text) { return text.substr(text.find("-> ") + 3); }

// Every answer as often as any other.
void expect_uniform_answers(const TaskPtr& t, Split split, size_t kinds) {
  constexpr int64_t kCount = 20000;
  std::map<int64_t, double> seen;
  for (uint64_t i = 0; i < kCount; ++i) ++seen[t->sample(2, split, i).target.back()];
  EXPECT_EQ(seen.size(), kinds);
  const double p = 1.0 / double(kinds);
  for (const auto& [answer, n] : seen)
    EXPECT_NEAR(n / kCount, p, 5 * std::sqrt(p * (1 - p) / kCount)) << t->word(answer);
}

TEST(CycleNavigation, AddsTheSteps) {
  for (const auto& [cycle, step] : {std::pair{6, 1}, {2, 1}, {7, 3}, {3, 5}}) {
    const auto t = walk(cat("{name: cycle_navigation, cycle: ", cycle, ", step: ", step, "}"));
    EXPECT_EQ(t->vocabulary(), cycle + 2 * step + 2);
    for (uint64_t i = 0; i < 500; ++i) {
      const auto e = t->sample(1, i % 2 ? Split::kTrain : Split::kEval, i);
      const auto text = t->text(e);
      int64_t sum = 0;
      for (const auto& word : words_before_arrow(text)) sum += std::stoll(word);
      ASSERT_EQ(after_arrow(text), cat("place", (sum % cycle + cycle) % cycle)) << text;
      ASSERT_EQ(int64_t(e.input.size()), e.length - 1);
    }
  }
}

TEST(CycleNavigation, HasThePublishedIds) {
  const auto t = walk("name: cycle_navigation");
  EXPECT_EQ(t->vocabulary(), 10);
  const char* words[] = {"PAD", "0", "+1", "-1", "place0", "place1", "place2", "place3"};
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(t->word(i), words[i]);
  EXPECT_DOUBLE_EQ(t->chance(), 1.0 / 6);
  // Short walks of bounded steps stay near the start; at the test's lengths the end is anywhere.
  expect_uniform_answers(t, Split::kEval, 6);
}

TEST(EvenPairs, ComparesTheEnds) {
  const auto t = walk("name: even_pairs");
  EXPECT_EQ(t->vocabulary(), 3);
  for (uint64_t i = 0; i < 2000; ++i) {
    const auto e = t->sample(1, Split::kTrain, i, {2, 40});
    // The name's own definition: ab and ba together occur an even number of times.
    int64_t changes = 0;
    for (size_t t = 1; t < e.input.size(); ++t) changes += e.input[t] != e.input[t - 1];
    ASSERT_EQ(e.target.back(), changes % 2 ? 2 : 1);
    // And the published formula.
    ASSERT_EQ(e.target.back(), std::abs(e.input.back() - e.input.front()) + 1);
  }
  EXPECT_EQ(t->chance(), 0.5);
  expect_uniform_answers(t, Split::kEval, 2);
}

TEST(Cups, TheBallGoesWithItsCup) {
  for (const int n : {2, 3, 5}) {
    const auto t = walk(cat("{name: cups, cups: ", n, "}"));
    EXPECT_EQ(t->vocabulary(), n + n * (n - 1) / 2);
    for (uint64_t i = 0; i < 500; ++i) {
      const auto e = t->sample(1, i % 2 ? Split::kTrain : Split::kEval, i);
      const auto text = t->text(e);
      const auto words = words_before_arrow(text);
      // All cups are followed, the empty ones too.
      std::string row(size_t(n), '.');
      row[size_t(std::stoi(words[0].substr(3)) - 1)] = 'o';
      for (size_t w = 1; w < words.size(); ++w) {
        const auto mark = words[w].find("<>");
        std::swap(row[size_t(std::stoi(words[w]) - 1)],
                  row[size_t(std::stoi(words[w].substr(mark + 2)) - 1)]);
      }
      ASSERT_EQ(after_arrow(text), cat("cup", row.find('o') + 1)) << text;
      ASSERT_EQ(int64_t(words.size()), e.length + 1);
    }
    expect_uniform_answers(t, Split::kTrain, size_t(n));
  }
}

TEST(Cups, CanAskAfterEverySwap) {
  const auto t = walk("{name: cups, train: {targets: all, length: 9}}");
  const auto e = t->sample(1, Split::kTrain, 0);
  EXPECT_EQ(std::count(e.target.begin(), e.target.end(), -1), 0);
  EXPECT_EQ(e.target[0], e.input[0]);
}

}  // namespace
}  // namespace lrnn::tasks
