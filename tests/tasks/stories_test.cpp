#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "tasks/task.h"

// swap_program, coins and recall, followed on the printed line as a reader with paper and pencil
// would.
namespace lrnn::tasks {
namespace {

TaskPtr story(const std::string& yaml) { return make(Section::from_text(yaml)); }

TEST(SwapProgram, RunsAsWritten) {
  for (const int n : {2, 4, 9}) {
    const auto t = story(cat("{name: swap_program, variables: ", n, "}"));
    EXPECT_EQ(t->vocabulary(), 2 * n + 4);
    EXPECT_DOUBLE_EQ(t->chance(), 1.0 / n);
    for (uint64_t i = 0; i < 300; ++i) {
      const auto e = t->sample(1, i % 2 ? Split::kTrain : Split::kEval, i);
      std::istringstream in(t->text(e));
      std::map<std::string, std::string> x;
      int64_t swaps = 0;
      std::string a, b, c, d, mark;
      while (in >> a && a != "print") {
        in >> mark;
        if (mark == "=") {
          in >> x[a] >> mark;
        } else {
          in >> b >> mark >> c >> mark >> d;
          // Tuple assignment: the right side is read before the left is written.
          const auto first = x.at(c), second = x.at(d);
          x[a] = first, x[b] = second;
          ++swaps;
          in >> mark;
        }
        ASSERT_EQ(mark, ";");
      }
      in >> a >> mark >> b;
      ASSERT_EQ(mark, "->");
      ASSERT_EQ(b, x.at(a)) << t->text(e);
      ASSERT_EQ(swaps, e.length);
      ASSERT_EQ(int64_t(x.size()), n);
    }
  }
}

TEST(SwapProgram, PrintsAProgramAPersonCanRead) {
  const auto t = story("{name: swap_program, variables: 2, train: {length: 1}}");
  const auto text =
      t->text({{0, 5, 3, 6, 1, 5, 2, 6, 0, 4, 1, 5, 1, 4, 0, 6, 7, 1},
               {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 3},
               1});
  EXPECT_EQ(text, "x[1] = b ; x[2] = a ; x[1] , x[2] = x[2] , x[1] ; print x[2] -> b");
}

TEST(Coins, EverybodyKeepsTrack) {
  const auto t = story("name: coins");
  std::map<std::string, double> answers;
  double count = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    const auto e = t->sample(1, i % 2 ? Split::kTrain : Split::kEval, i);
    std::istringstream in(t->text(e));
    std::map<std::string, std::string> purse;
    int64_t trades = 0;
    std::string who, does, what, answer;
    while (in >> who >> does) {
      if (does == "has") {
        in >> purse[who];
      } else if (does == "trades") {
        in >> what;
        ASSERT_NE(who, what);
        std::swap(purse.at(who), purse.at(what));
        ++trades;
      } else {
        ASSERT_EQ(does, "holds");
        in >> what >> answer;
        ASSERT_EQ(answer, purse.at(who)) << t->text(e);
        ++answers[answer], ++count;
        in >> what;
      }
    }
    ASSERT_EQ(trades, e.length);
    ASSERT_EQ(purse.size(), 5u);
  }
  for (const auto& [coin, n] : answers)
    EXPECT_NEAR(n / count, 0.2, 5 * 0.4 / std::sqrt(count)) << coin;
}

TEST(Recall, AnswersWithTheValueOfTheKey) {
  for (const std::string keys :
       {"", ", gaps: uniform", ", filler: blank", ", pairs: 1, keys: 1, values: 1",
        ", keys: 16, pairs: 16, train: {length: 64}, eval: {length: [64, 200]}"}) {
    const auto t = story("{name: recall" + keys + "}");
    for (uint64_t i = 0; i < 300; ++i) {
      const auto e = t->sample(1, i % 2 ? Split::kTrain : Split::kEval, i);
      std::map<int64_t, int64_t> value;
      size_t questions = 0;
      for (size_t p = 0; p < e.input.size(); ++p) {
        const auto word = t->word(e.input[p]);
        if (word[0] == 'k' && !value.contains(e.input[p])) {
          ASSERT_EQ(p % 2, 0u);
          ASSERT_EQ(t->word(e.input[p + 1])[0], 'v');
          value[e.input[p]] = e.input[p + 1];
          ASSERT_EQ(e.target[p], -1);
        } else if (word[0] == 'k') {
          ASSERT_EQ(e.target[p], value.at(e.input[p]));
          ++questions;
        } else {
          ASSERT_EQ(e.target[p], -1);
        }
      }
      ASSERT_EQ(questions, value.size()) << "every key is asked for once";
      ASSERT_LE(int64_t(e.input.size()), e.length);
    }
  }
}

TEST(Recall, NearMeansNear) {
  const auto mean = [](const std::string& gaps) {
    const auto t = story("{name: recall, pairs: 1, gaps: " + gaps + ", train: {length: 2002}}");
    double sum = 0;
    for (uint64_t i = 0; i < 3000; ++i)
      sum += double(t->sample(1, Split::kTrain, i).input.size() - 3) / 2 + 1;
    return sum / 3000;
  };
  // Among 1 .. n with weight 1/x the mean is n / (1 + 1/2 + … + 1/n); uniformly (n + 1) / 2.
  double harmonic = 0;
  for (int x = 1; x <= 1000; ++x) harmonic += 1.0 / x;
  EXPECT_NEAR(mean("near"), 1000 / harmonic, 25);
  EXPECT_NEAR(mean("uniform"), 500.5, 30);
}

TEST(Recall, RefusesMorePairsThanKeys) {
  try {
    make(Section::from_text("{name: recall, keys: 4, pairs: 5}", "x.yaml"));
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "x.yaml:1: pairs must be between 1 and the number of keys (4), got 5");
  }
}

}  // namespace
}  // namespace lrnn::tasks
