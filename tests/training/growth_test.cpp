#include "training/growth.h"

#include <functional>

#include "tests/training/small.h"
#include "training/trainer.h"

namespace lrnn::training {
namespace {

constexpr int64_t kWindow = 50;

// The lengths of that many batches, of which batch i answers share(i) of its letters.
std::vector<int64_t> lengths(int64_t batches, Range words,
                             const std::function<double(int64_t)>& share, double grow_at = 0.98) {
  TrainConfig train;
  train.grow_at = grow_at;
  Growth growth = Growth::begin(train, words);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < batches; ++i) {
    out.push_back(growth.length);
    growth.saw(train, words, int64_t(1000 * share(i)), 1000);
  }
  return out;
}

TEST(Growth, AQuarterLongerWhereverWordsAreAnswered) {
  const auto got = lengths(20 * kWindow, {1, 128}, [](int64_t) { return 0.98; });
  EXPECT_EQ(got[0], 2);
  std::vector<int64_t> stages = {got[0]};
  for (const int64_t length : got)
    if (length != stages.back()) stages.push_back(length);
  EXPECT_EQ(stages, (std::vector<int64_t>{2, 3, 4, 5, 7, 9, 12, 15, 19, 24, 30, 38, 48, 60, 75, 94,
                                          118, 128}));
  EXPECT_EQ(got.back(), 128);
}

// While a GPU works on a batch the next one is made already.
TEST(Growth, WhatABatchSaysCountsFromTheOneAfterTheNext) {
  const auto got = lengths(3 * kWindow, {1, 128}, [](int64_t) { return 1.0; });
  EXPECT_EQ(got[kWindow], 2);
  EXPECT_EQ(got[kWindow + 1], 3);
  EXPECT_EQ(got[2 * kWindow], 3);
  EXPECT_EQ(got[2 * kWindow + 1], 4);
}

TEST(Growth, WaitsForWordsThatAreNotAnsweredAndGoesBackWhereTheyAreLost) {
  EXPECT_EQ(lengths(10 * kWindow, {1, 128}, [](int64_t) { return 0.97; }).back(), 2);
  const auto got = lengths(40 * kWindow, {1, 128}, [](int64_t i) {
    return i < 20 * kWindow ? 1 : i < 24 * kWindow ? 0.4 : 0.6;
  });
  EXPECT_EQ(got[20 * kWindow], 128);
  EXPECT_EQ(got.back(), 8);
  EXPECT_EQ(lengths(10 * kWindow, {1, 128}, [](int64_t) { return 0.0; }).back(), 2);
}

TEST(Growth, NoLongerThanTheTaskAndWholeWithoutIt) {
  EXPECT_EQ(lengths(10 * kWindow, {1, 5}, [](int64_t) { return 1.0; }).back(), 5);
  EXPECT_EQ(lengths(10 * kWindow, {1, 1}, [](int64_t i) { return i % 2 ? 1.0 : 0.0; }).back(), 1);
  for (const int64_t length : lengths(
           3 * kWindow, {1, 128}, [](int64_t) { return 0.0; }, 0))
    EXPECT_EQ(length, 128);
}

// A sum has three symbols at least, and an answer at its end alone.
TEST(Growth, BeginsWithTheShortestWordsThatThereAre) {
  EXPECT_EQ(lengths(2 * kWindow, {3, 40}, [](int64_t) { return 0.0; }).back(), 3);
  EXPECT_EQ(lengths(2 * kWindow, {6, 6}, [](int64_t) { return 0.0; }).back(), 6);
  Small small(
      {"task={name: modular_arithmetic, train: {length: [3, 12]}, eval: {length: 12, samples: 2}}",
       "train.batch=2", "train.grow_at=0.5"});
  Trainer trainer(*small.model, *small.task, small.config.train, 1);
  EXPECT_EQ(trainer.update(0, 0).length, 3);
}

TEST(Growth, BatchesThatWereSkippedSayNothing) {
  TrainConfig train;
  train.grow_at = 0.9;
  Growth growth = Growth::begin(train, {1, 128});
  for (int64_t i = 0; i < kWindow; ++i) growth.saw(train, {1, 128}, i % 2 ? 10 : 0, i % 2 ? 10 : 0);
  EXPECT_EQ(growth.then, 3);
  for (int64_t i = 0; i < kWindow; ++i) growth.saw(train, {1, 128}, 0, 0);
  EXPECT_EQ(growth.then, 3);
}

// Every letter is asked after, so the targets tell the length.
TEST(Growth, IsTheLengthOfTheBatches) {
  Small small({"task={name: group, group: S3, train: {length: 4}, eval: {length: 8, samples: 2}}",
               "train.batch=2", "train.grow_at=0.001"});
  Trainer trainer(*small.model, *small.task, small.config.train, 1);
  for (int64_t s = 0; s < 3 * kWindow; ++s) {
    const auto update = trainer.update(s, s);
    EXPECT_EQ(update.length, std::min<int64_t>(4, 2 + std::max<int64_t>(0, s - 1) / kWindow)) << s;
    EXPECT_EQ(update.targets, 2 * (1 + update.length));  // the empty word, too
  }
}

struct Text : tasks::Task {
  int64_t words = 0;
  int64_t vocabulary() const override { return words; }
  double chance() const override { return 0; }
  tasks::Score score() const override { return tasks::Score::kText; }
  tasks::Example sample(uint64_t, tasks::Split, uint64_t, Range) const override { return {}; }
  using tasks::Task::sample;
  std::string word(int64_t token) const override { return std::to_string(token); }
};

TEST(Growth, RefusesTexts) {
  Small small;
  Text text;
  text.words = small.task->vocabulary();
  small.config.train.grow_at = 0.9;
  try {
    Trainer trainer(*small.model, text, small.config.train, 1);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("train.grow_at is for tasks with words"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace lrnn::training
