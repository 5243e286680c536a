#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "tasks/task.h"

namespace lrnn::tasks {
namespace {

TaskPtr brackets(const std::string& keys = "") {
  return make(Section::from_text("{name: modular_arithmetic_with_brackets" + keys + "}"));
}

// Values are found by rewriting the text: the innermost bracket without brackets inside becomes its
// value, until one number is left. (The generator builds a tree; nothing is shared.)
int64_t rewrite(std::vector<std::string> words, int64_t m) {
  const auto simple = [&](size_t begin, size_t end) {
    size_t at = begin;
    const auto term = [&] {
      const int64_t sign = words[at] == "-" ? -1 : 1;
      at += sign < 0;
      return sign * std::stoll(words[at++]);
    };
    int64_t value = term();
    if (at < end) {
      const std::string op = words[at++];
      const int64_t right = term();
      value = op == "+" ? value + right : op == "-" ? value - right : value * right;
    }
    EXPECT_EQ(at, end);
    return (value % m + m) % m;
  };
  while (true) {
    const auto close = std::find(words.begin(), words.end(), ")");
    if (close == words.end()) return simple(0, words.size());
    auto open = close;
    while (*open != "(") --open;
    const auto value = simple(size_t(open + 1 - words.begin()), size_t(close - words.begin()));
    *open = std::to_string(value);
    words.erase(open + 1, close + 1);
  }
}

std::vector<std::string> expression(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word && word != "=";) out.push_back(word);
  return out;
}

int64_t told(const std::string& text) { return std::stoll(text.substr(text.find("-> ") + 3)); }

TEST(Brackets, TheReaderKnowsThePublishedExample) {
  EXPECT_EQ(rewrite(expression("( ( ( - 0 ) - 1 ) + ( - 0 + ( - 0 ) ) ) ="), 5), 4);
}

TEST(Brackets, HasThePublishedNumbers) {
  const auto t = brackets();
  EXPECT_EQ(t->vocabulary(), 12);
  EXPECT_EQ(t->chance(), 0.2);
  EXPECT_EQ(t->train_length, (Range{3, 40}));
  EXPECT_EQ(t->eval_length, (Range{40, 256}));
  const char* words[] = {"0", "1", "2", "3", "4", "+", "-", "*", "(", ")", "=", "PAD"};
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(t->word(i), words[i]);
}

TEST(Brackets, AgreesWithTheReader) {
  for (const bool mult : {false, true})
    for (const int64_t m : {2, 5, 7}) {
      const auto t = brackets(cat(", mult: ", mult, ", modulus: ", m));
      std::map<std::string, int64_t> seen;
      for (uint64_t i = 0; i < 1000; ++i) {
        const auto e = t->sample(3, i % 4 ? Split::kTrain : Split::kEval, i);
        const auto text = t->text(e);
        const auto words = expression(text);
        ASSERT_EQ(rewrite(words, m), told(text)) << text;
        ASSERT_EQ(e.target.back(), told(text));
        ASSERT_EQ(int64_t(words.size()), e.length - 3);
        ASSERT_EQ(t->word(e.input.back()), "=");
        for (const auto& word : words) ++seen[word];
      }
      EXPECT_EQ(seen.contains("*"), mult);
    }
}

TEST(Brackets, ShortLengthsCollapse) {
  const auto t = brackets();
  constexpr int64_t kCount = 38000;
  std::map<int64_t, double> lengths;
  for (uint64_t i = 0; i < kCount; ++i) ++lengths[t->sample(1, Split::kTrain, i).length];
  EXPECT_EQ(lengths.begin()->first, 5);
  EXPECT_EQ(lengths.rbegin()->first, 40);
  EXPECT_NEAR(lengths[5], 3000, 5 * std::sqrt(3000.0));
  EXPECT_NEAR(lengths[17], 1000, 5 * std::sqrt(1000.0));
  for (const int64_t n : {3, 4, 5}) EXPECT_EQ(t->sample(1, Split::kTrain, 0, {n, n}).length, 5);
}

struct Shape {
  double depth = 0;
  std::map<std::string, double> share;
  std::map<int64_t, double> depths, labels;
};

Shape shape_of(const TaskPtr& t, Split split, Range length, int64_t count) {
  Shape out;
  double tokens = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto e = t->sample(11, split, uint64_t(i), length);
    int64_t open = 0, deepest = 0;
    for (const int64_t token : e.input) {
      const auto word = t->word(token);
      if (word == "=") break;
      open += (word == "(") - (word == ")");
      deepest = std::max(deepest, open);
      ++out.share[word], ++tokens;
    }
    out.depth += double(deepest) / double(count);
    out.depths[deepest] += 1 / double(count);
    out.labels[e.target.back()] += 1 / double(count);
  }
  for (auto& [word, n] : out.share) n /= tokens;
  return out;
}

TEST(Brackets, HasThePublishedStatistics) {
  const auto t = brackets();
  const auto train = shape_of(t, Split::kTrain, t->train_length, 40000);
  EXPECT_NEAR(train.depth, 3.03, 0.05);
  const double histogram[] = {.079, .113, .158, .214, .261, .142, .031, .003};
  for (int64_t d = 0; d < 8; ++d) EXPECT_NEAR(train.depths.at(d), histogram[d], 0.015) << d;
  EXPECT_NEAR(train.share.at("("), .249, .004);
  EXPECT_NEAR(train.share.at(")"), .249, .004);
  EXPECT_NEAR(train.share.at("+"), .090, .004);
  EXPECT_NEAR(train.share.at("-"), .180, .004);
  EXPECT_NEAR(train.share.at("3"), .047, .004);
  for (const auto& [label, share] : train.labels)
    EXPECT_NEAR(share, 0.2, 5 * 0.4 / std::sqrt(40000.0)) << label;
  for (const auto& [lx, depth] :
       {std::pair{10, 2.0}, {20, 3.45}, {37, 5.03}, {64, 6.6}, {128, 8.8}, {253, 11.1}})
    EXPECT_NEAR(shape_of(t, Split::kEval, {lx + 3, lx + 3}, 2000).depth, depth, 0.15) << lx;
}

}  // namespace
}  // namespace lrnn::tasks
