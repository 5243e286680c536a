#include <gtest/gtest.h>

#include "training/config.h"

namespace lrnn::training {
namespace {

TEST(Schedule, TheValuesOfThePublishedRuns) {
  TrainConfig parity;  // lr 1e-3, 2000 of 20000
  const auto near = [&](int64_t step, double want) {
    EXPECT_NEAR(learning_rate(parity, step), want, 1e-6 * want) << step;
  };
  EXPECT_EQ(learning_rate(parity, 0), 0);
  near(1, 5e-7), near(1000, 5e-4), near(2000, 1e-3), near(11000, 5.005e-4);
  near(15000, 1.794276e-4), near(19999, 1.0000076e-6), near(20000, 1e-6), near(30000, 1e-6);

  TrainConfig modular;
  modular.warmup = 10000, modular.steps = 100000;
  EXPECT_NEAR(learning_rate(modular, 9999), 9.999e-4, 1e-12);
  EXPECT_NEAR(learning_rate(modular, 55000), 5.005e-4, 1e-12);
}

TEST(Schedule, NeitherWarmUpNorFloor) {
  TrainConfig train;
  train.warmup = 0, train.lr_floor = 0, train.steps = 100, train.lr = 2;
  EXPECT_DOUBLE_EQ(learning_rate(train, 0), 2);
  EXPECT_NEAR(learning_rate(train, 25), 1 + std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(learning_rate(train, 50), 1, 1e-12);
  EXPECT_EQ(learning_rate(train, 100), 0);
}

TEST(Schedule, Constant) {
  TrainConfig train;
  train.schedule = "constant", train.warmup = 4, train.steps = 10, train.lr = 1;
  for (int64_t step = 0; step < 20; ++step)
    EXPECT_EQ(learning_rate(train, step), step < 4 ? double(step) / 4 : 1);
}

TEST(Schedule, RisesThenFallsWithoutAJump) {
  TrainConfig train;
  train.warmup = 7, train.steps = 50;
  for (int64_t step = 1; step < 60; ++step) {
    const double change = learning_rate(train, step) - learning_rate(train, step - 1);
    EXPECT_LT(std::abs(change), train.lr / 6) << step;
    EXPECT_TRUE(step <= 7 ? change > 0 : change <= 0) << step;
  }
}

}  // namespace
}  // namespace lrnn::training
