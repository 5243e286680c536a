#include "training/evaluate.h"

#include <gtest/gtest.h>

#include "tests/training/small.h"

namespace lrnn::training {
namespace {

using tasks::Split;

// One sequence at a time, as the papers define it.
Evaluation by_hand(Small& small, const EvaluateOptions& options, int64_t samples, Range length) {
  torch::NoGradGuard no_gradients;
  Evaluation out;
  double batch_loss = 0, targets = 0;
  int64_t batches = 0;
  std::vector<std::vector<bool>> prefixes;
  for (int64_t i = 0; i < samples; ++i) {
    const auto e = small.task->sample(options.seed, Split::kEval, uint64_t(i), length);
    model::State state;
    auto logits = small.model->forward(torch::tensor(e.input).unsqueeze(0), state)[0];
    bool all = true;
    std::vector<bool> prefix;
    for (size_t t = 0; t < e.target.size(); ++t) {
      if (e.target[t] < 0) continue;
      const auto row = logits[int64_t(t)];
      batch_loss -= torch::log_softmax(row, 0)[e.target[t]].item<double>();
      targets += 1;
      const bool right = row.argmax().item<int64_t>() == e.target[t];
      all &= right;
      out.tokens.right += right, out.tokens.count += 1;
      prefix.push_back(all);
    }
    prefixes.push_back(prefix);
    out.sequences.right += all, out.sequences.count += 1;
    out.by_length[e.length].right += all, out.by_length[e.length].count += 1;
    if ((i + 1) % options.batch == 0 || i + 1 == samples) {
      out.loss += batch_loss / targets;
      batch_loss = targets = 0;
      ++batches;
    }
  }
  out.loss /= double(batches);
  for (size_t l = 0; l < prefixes[0].size(); ++l) {
    double right = 0;
    for (const auto& prefix : prefixes) right += l < prefix.size() ? prefix[l] : prefix.back();
    out.prefix.push_back(right / double(samples));
  }
  return out;
}

void expect_same(const Evaluation& got, const Evaluation& want, bool prefix) {
  EXPECT_EQ(got.sequences.right, want.sequences.right);
  EXPECT_EQ(got.sequences.count, want.sequences.count);
  EXPECT_NEAR(got.loss, want.loss, 1e-5);
  ASSERT_EQ(got.by_length.size(), want.by_length.size());
  for (const auto& [length, tally] : want.by_length) {
    EXPECT_EQ(got.by_length.at(length).right, tally.right) << length;
    EXPECT_EQ(got.by_length.at(length).count, tally.count) << length;
  }
  if (!prefix) return;
  EXPECT_EQ(got.tokens.right, want.tokens.right);
  EXPECT_EQ(got.tokens.count, want.tokens.count);
  ASSERT_EQ(got.prefix.size(), want.prefix.size());
  for (size_t l = 0; l < got.prefix.size(); ++l) EXPECT_DOUBLE_EQ(got.prefix[l], want.prefix[l]);
  EXPECT_DOUBLE_EQ(got.prefix.back(), got.accuracy());
}

TEST(Evaluate, CountsAnswers) {
  Small small;
  const EvaluateOptions options{.seed = 5, .samples = 0, .length = {}, .batch = 10};
  const auto got = evaluate(*small.model, *small.task, options);
  expect_same(got, by_hand(small, options, 64, {12, 24}), false);
  EXPECT_EQ(got.chance, 0.5);
  EXPECT_DOUBLE_EQ(got.scaled(), 2 * got.accuracy() - 1);
  EXPECT_EQ(got.tokens.count, 0);
}

TEST(Evaluate, CountsPrefixes) {
  Small small({}, "configs/demo/addition_n2.yaml");
  // A head that mostly knows which words are numbers, so that prefixes of every length occur.
  for (auto& p : small.model->named_parameters()) p.value().data().mul_(3);
  const EvaluateOptions options{.seed = 5, .samples = 50, .length = {3, 3}, .batch = 16};
  const auto got = evaluate(*small.model, *small.task, options);
  expect_same(got, by_hand(small, options, 50, {3, 3}), true);
}

TEST(Evaluate, LongSequencesAreSplitIntoSeveralForwards) {
  Small small;
  const EvaluateOptions options{.seed = 1, .samples = 24, .length = {900, 1200}, .batch = 24};
  expect_same(evaluate(*small.model, *small.task, options),
              by_hand(small, options, 24, {900, 1200}), false);
}

TEST(Evaluate, RefusesWhatCannotWork) {
  Small small;
  EXPECT_THROW(evaluate(*small.model, *small.task, {.samples = -1}), Error);
  EXPECT_THROW(evaluate(*small.model, *small.task, {.batch = 0}), Error);
  EXPECT_THROW(evaluate(*small.model, *small.task, {.length = {9, 3}}), Error);
}

TEST(Validation, IsWhatComesAfterTheTest) {
  Small small;
  const EvaluateOptions test{.seed = 5, .samples = 24};
  const auto other = validation_of(*small.task, test, 16);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->first, 24);
  EXPECT_EQ(other->samples, 16);
  const auto a = evaluate(*small.model, *small.task, test),
             b = evaluate(*small.model, *small.task, *other),
             all = evaluate(*small.model, *small.task, {.seed = 5, .samples = 40});
  EXPECT_EQ(a.sequences.right + b.sequences.right, all.sequences.right);
  EXPECT_EQ(a.sequences.count + b.sequences.count, all.sequences.count);
  EXPECT_EQ(validation_of(*small.task, test, 1000)->samples, 24) << "no more than the test's";
  EXPECT_FALSE(validation_of(*small.task, test, 0));
}

}  // namespace
}  // namespace lrnn::training
