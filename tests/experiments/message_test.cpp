#include <gtest/gtest.h>

#include <cmath>

#include "experiments/run.h"

namespace lrnn::experiments {
namespace {

TEST(Message, ComesBackFromItsLine) {
  Message message;
  message.progress = {.step = 3,
                      .steps = 40,
                      .loss = 0.1,
                      .accuracy = 1 / 3.0,
                      .eval_accuracy = 0.5,
                      .eval_scaled = -0.25,
                      .steps_per_second = 1e3};
  const auto line = to_line(message);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto back = from_line(line);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->kind, Message::kProgress);
  EXPECT_EQ(back->progress.step, 3);
  EXPECT_EQ(back->progress.steps, 40);
  EXPECT_EQ(back->progress.loss, 0.1);
  EXPECT_EQ(back->progress.accuracy, 1 / 3.0);
  EXPECT_EQ(back->progress.eval_accuracy, 0.5);
  EXPECT_EQ(back->progress.eval_scaled, -0.25);
  EXPECT_EQ(back->progress.steps_per_second, 1e3);
  for (const auto kind : {Message::kWarning, Message::kError}) {
    const auto said = from_line(to_line({.kind = kind, .text = "a \"b\"\nc", .hint = "d"}));
    ASSERT_TRUE(said);
    EXPECT_EQ(said->kind, kind);
    EXPECT_EQ(said->text, "a \"b\"\nc");
    EXPECT_EQ(said->hint, "d");
  }
}

TEST(Message, OfALanguageModelHasItsSpeed) {
  Message message;
  message.progress.text = true;
  message.progress.speed = {.tokens_per_second = 1.9e5, .flops = 4e14, .mfu = 0.5};
  auto back = from_line(to_line(message));
  ASSERT_TRUE(back);
  EXPECT_TRUE(back->progress.text);
  EXPECT_EQ(back->progress.speed.tokens_per_second, 1.9e5);
  EXPECT_EQ(back->progress.speed.flops, 4e14);
  EXPECT_EQ(back->progress.speed.mfu, 0.5);
  message.progress.speed.mfu = -1;
  const auto line = to_line(message);
  EXPECT_EQ(line.find("mfu"), std::string::npos) << line;
  EXPECT_EQ(from_line(line)->progress.speed.mfu, -1);
}

TEST(Message, WithoutAnEvaluationOrANumber) {
  Message message;
  message.progress.loss = NAN;
  const auto line = to_line(message);
  EXPECT_EQ(line.find("eval"), std::string::npos) << line;
  EXPECT_TRUE(std::isnan(from_line(line)->progress.loss));
  EXPECT_EQ(from_line(line)->progress.eval_accuracy, -1);
}

// Longer ones could arrive in pieces, mixed with others.
TEST(Message, FitsIntoAPipe) {
  const std::string bytes(5000, '\xff'), controls(5000, '\x01');
  for (const auto& text : {bytes, controls})
    EXPECT_LT(to_line({.kind = Message::kError, .text = text, .hint = text}).size(), 4096u);
}

TEST(Message, IsNotAnyLine) {
  for (const char* line :
       {"", "step 1/2", "{", "3", "[]", "{}", "{\"kind\":1}", "{\"kind\":\"eval\"}",
        "{\"kind\":\"warning\"}", "{\"kind\":\"progress\",\"step\":\"x\",\"steps\":2}"})
    EXPECT_FALSE(from_line(line)) << line;
}

}  // namespace
}  // namespace lrnn::experiments
