#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tasks/task.h"

namespace lrnn::tasks {
namespace {

const auto parity = make(Section::from_text("name: parity"));

TEST(Parity, HasThePublishedNumbers) {
  EXPECT_EQ(parity->vocabulary(), 3);
  EXPECT_EQ(parity->chance(), 0.5);
  EXPECT_EQ(parity->score(), Score::kAnswer);
  EXPECT_EQ(parity->train_length, (Range{3, 40}));
  EXPECT_EQ(parity->eval_length, (Range{40, 256}));
  EXPECT_EQ(parity->eval_samples, 8192);
}

// Counted here bit by bit: the target stands on the last bit and says whether the ones are odd.
TEST(Parity, AnswersAreTheParityOfTheOnes) {
  for (uint64_t i = 0; i < 5000; ++i) {
    const auto e = parity->sample(11, i % 2 ? Split::kTrain : Split::kEval, i);
    ASSERT_EQ(static_cast<int64_t>(e.input.size()), e.length - 1);
    int ones = 0;
    for (const int64_t token : e.input) {
      ASSERT_TRUE(token == 1 || token == 2);
      ones += token == 2;
    }
    ASSERT_EQ(e.target.back(), ones % 2 ? 2 : 1);
  }
}

// With targets: all every prefix is asked for in training, and nothing changes in evaluation.
TEST(Parity, TargetsAfterEveryBit) {
  const auto all = make(Section::from_text("{name: parity, train: {targets: all}}"));
  for (uint64_t i = 0; i < 500; ++i) {
    const auto e = all->sample(11, Split::kTrain, i), last = parity->sample(11, Split::kTrain, i);
    ASSERT_EQ(e.input, last.input);
    int ones = 0;
    for (size_t t = 0; t < e.input.size(); ++t) {
      ones += e.input[t] == 2;
      ASSERT_EQ(e.target[t], ones % 2 ? 2 : 1);
    }
    ASSERT_EQ(all->sample(11, Split::kEval, i).target, parity->sample(11, Split::kEval, i).target);
  }
}

// The published example: 1 0 1 1 is 2 1 2 2, and its target is 2 at position 3.
TEST(Parity, ThePublishedExample) {
  bool found = false;
  for (uint64_t i = 0; i < 1000 && !found; ++i) {
    const auto e = parity->sample(1, Split::kTrain, i, {5, 5});
    if (e.input != std::vector<int64_t>{2, 1, 2, 2}) continue;
    found = true;
    EXPECT_EQ(e.target, (std::vector<int64_t>{-1, -1, -1, 2}));
    EXPECT_EQ(e.length, 5);
    EXPECT_EQ(parity->text(e), "1 0 1 1 -> 1");
  }
  EXPECT_TRUE(found);
}

TEST(Parity, LengthsBitsAndAnswersAreUniform) {
  constexpr uint64_t kCount = 38000;
  std::map<int64_t, int64_t> lengths;
  int64_t odd = 0, ones = 0, bits = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    const auto e = parity->sample(2, Split::kTrain, i);
    ++lengths[e.length];
    odd += e.target.back() == 2;
    bits += static_cast<int64_t>(e.input.size());
    for (const int64_t token : e.input) ones += token == 2;
  }
  // Five deviations of a fair coin.
  EXPECT_NEAR(double(odd) / kCount, 0.5, 5 * 0.5 / std::sqrt(double(kCount)));
  EXPECT_NEAR(double(ones) / double(bits), 0.5, 5 * 0.5 / std::sqrt(double(bits)));
  ASSERT_EQ(lengths.size(), 38u);
  EXPECT_EQ(lengths.begin()->first, 3);
  EXPECT_EQ(lengths.rbegin()->first, 40);
  double chi2 = 0;
  for (const auto& [n, count] : lengths) chi2 += std::pow(double(count) - 1000, 2) / 1000;
  EXPECT_LT(chi2, 37 + 5 * std::sqrt(2 * 37.0));
}

}  // namespace
}  // namespace lrnn::tasks
