#include "training/batch.h"

#include <torch/nn/functional/loss.h>

#include "tests/close.h"
#include "tests/training/small.h"

namespace lrnn::training {
namespace {

using tasks::Example;
using torch::Tensor;

// The way everybody writes it first: padded to the longest, all positions through the whole model.
Tensor padded_loss(model::Model& model, const std::vector<Example>& examples) {
  size_t longest = 0;
  for (const auto& e : examples) longest = std::max(longest, e.input.size());
  auto input = torch::zeros({int64_t(examples.size()), int64_t(longest)}, torch::kInt64);
  auto target = torch::full_like(input, -1);
  for (size_t i = 0; i < examples.size(); ++i)
    for (size_t t = 0; t < examples[i].input.size(); ++t) {
      input[int64_t(i)][int64_t(t)] = examples[i].input[t];
      target[int64_t(i)][int64_t(t)] = examples[i].target[t];
    }
  model::State state;
  const auto logits = model.forward(input, state);
  return torch::nn::functional::cross_entropy(
      logits.flatten(0, 1), target.flatten(),
      torch::nn::functional::CrossEntropyFuncOptions().ignore_index(-1));
}

void compare(const std::vector<std::string>& overrides, const std::string& file) {
  Small small(overrides, file);
  small.model->to(torch::kFloat64);
  const auto split = tasks::Split::kTrain;
  const auto examples = draw(*small.task, 3, split, small.task->length(split), 0, 17);
  const auto want_loss = padded_loss(*small.model, examples);
  const auto want = gradients(*small.model, want_loss);

  const auto batch = make_batch(examples.data(), 17, small.task->vocabulary());
  model::State state;
  const auto logits = small.model->forward(batch.input, state, batch.context);
  const auto loss = loss_sum(logits, batch) / double(batch.targets);
  EXPECT_CLOSE("loss", loss, want_loss);
  const auto got = gradients(*small.model, loss);
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_CLOSE(small.model->named_parameters()[i].key(), got[i], want[i]);
}

TEST(Batch, SmoothedTargetsAreSpreadOverAllAnswers) {
  Small small;
  const auto split = tasks::Split::kTrain;
  const auto examples = draw(*small.task, 3, split, small.task->length(split), 0, 17);
  const auto batch = make_batch(examples.data(), 17, small.task->vocabulary());
  torch::manual_seed(1);
  const auto logits = torch::randn({batch.target.size(0), 3}, torch::kFloat64);
  const auto log = at::log_softmax(logits, -1);
  const auto answered = batch.target.ge(0).to(torch::kFloat64);
  const auto spread = -(log.mean(-1) * answered).sum();
  EXPECT_CLOSE("a fifth of it", loss_sum(logits, batch, 0.2),
               0.8 * loss_sum(logits, batch) + 0.2 * spread);
}

TEST(Batch, PackedIsPadded) { compare({"model.layers=2"}, "configs/tiny.yaml"); }

TEST(Batch, EqualLengthsAreNotPacked) {
  compare({"model.mixer.householders=2"}, "configs/demo/addition_n2.yaml");
  const Small small({}, "configs/demo/addition_n2.yaml");
  const auto split = tasks::Split::kTrain;
  const auto examples = draw(*small.task, 1, split, small.task->length(split), 0, 5);
  const auto batch = make_batch(examples.data(), 5, small.task->vocabulary());
  EXPECT_FALSE(batch.context.cu_seqlens.defined());
  EXPECT_EQ(batch.input.size(0), 5);
  EXPECT_EQ(batch.targets, batch.input.numel());
}

TEST(Batch, TargetsInTheMiddleOfDifferentLengths) {
  const Example examples[] = {{{1, 2, 1}, {-1, 2, 0}, 3}, {{2, 2}, {1, 1}, 2}, {{1}, {1}, 1}};
  const auto batch = make_batch(examples, 3, 3);
  EXPECT_FALSE(batch.context.read_at.defined());
  EXPECT_EQ(batch.targets, 5);
  const auto list = [](const Tensor& x) {
    return std::vector<int64_t>(x.data_ptr<int64_t>(), x.data_ptr<int64_t>() + x.numel());
  };
  EXPECT_EQ(list(batch.input), (std::vector<int64_t>{1, 2, 1, 2, 2, 1}));
  EXPECT_EQ(list(batch.target), (std::vector<int64_t>{-1, 2, 0, 1, 1, 1}));
  EXPECT_EQ(list(batch.context.cu_seqlens), (std::vector<int64_t>{0, 3, 5, 6}));
}

// Wherever the one question of each stands, packed and in a rectangle.
TEST(Batch, OneQuestionEachIsReadWhereItIs) {
  const Example examples[] = {{{1, 2, 1}, {-1, 2, -1}, 3}, {{2, 2}, {-1, 1}, 2}};
  for (const int64_t length : {0, 4}) {
    const auto batch = make_batch(examples, 2, 3, length);
    EXPECT_TRUE(torch::equal(batch.context.read_at,
                             torch::tensor({int64_t{1}, length ? int64_t{5} : int64_t{4}})));
    EXPECT_TRUE(torch::equal(batch.target, torch::tensor({int64_t{2}, int64_t{1}})));
    EXPECT_EQ(batch.targets, 2);
  }
}

TEST(Batch, RefusesWhatCannotWork) {
  const auto refuses = [](Example e) {
    try {
      make_batch(&e, 1, 3);
      return false;
    } catch (const Error&) {
      return true;
    }
  };
  EXPECT_FALSE(refuses({{1, 2}, {-1, 2}, 2}));
  EXPECT_TRUE(refuses({{}, {}, 0}));
  EXPECT_TRUE(refuses({{1, 2}, {2}, 2}));
  EXPECT_TRUE(refuses({{1, 3}, {-1, 2}, 2}));
  EXPECT_TRUE(refuses({{1, -1}, {-1, 2}, 2}));
  EXPECT_TRUE(refuses({{1, 2}, {-1, 3}, 2}));
  EXPECT_TRUE(refuses({{1, 2}, {-1, -1}, 2}));
}

// What follows a shorter sequence in a rectangle has no target and changes nothing before it.
TEST(Batch, ARectangleIsThePackedBatch) {
  Small small;
  const auto split = tasks::Split::kTrain;
  const auto examples = draw(*small.task, 1, split, small.task->length(split), 0, 7);
  const int64_t V = small.task->vocabulary(), T = longest(examples.data(), 7) + 3;
  const auto packed = make_batch(examples.data(), 7, V),
             rectangle = make_batch(examples.data(), 7, V, T);
  EXPECT_EQ(rectangle.input.sizes(), torch::IntArrayRef({7, T}));
  EXPECT_EQ(rectangle.targets, packed.targets);
  model::State a, b;
  const auto want = small.model->forward(packed.input, a, packed.context),
             got = small.model->forward(rectangle.input, b, rectangle.context);
  EXPECT_NEAR(loss_sum(got, rectangle).item<double>(), loss_sum(want, packed).item<double>(), 1e-4);
  EXPECT_EQ(right(got, rectangle).sum().item<int64_t>(), right(want, packed).sum().item<int64_t>());
  EXPECT_THROW(make_batch(examples.data(), 7, V, T - 4), Error);
}

TEST(ShortWords, AreTheSameOnesCutWhereEveryLetterHasAnAnswer) {
  Small small({"task.name=group", "task.group=S3", "task.train.length=20", "task.eval.length=20"});
  const auto split = tasks::Split::kTrain;
  const auto whole = draw(*small.task, 3, split, small.task->length(split), 5, 17);
  const auto cut = draw_up_to(*small.task, 3, 8, 5, 17);
  const size_t before = small.task->before_word().size();
  for (size_t i = 0; i < whole.size(); ++i) {
    const size_t n = before + 8;
    ASSERT_EQ(cut[i].input.size(), n);
    EXPECT_EQ(cut[i].length, 8);
    EXPECT_TRUE(std::equal(cut[i].input.begin(), cut[i].input.end(), whole[i].input.begin()));
    EXPECT_TRUE(std::equal(cut[i].target.begin(), cut[i].target.end(), whole[i].target.begin()));
    EXPECT_EQ(cut[i].target.size(), n);
  }
}

TEST(ShortWords, AreWordsOfTheirOwnWhereTheAnswerIsAtTheEnd) {
  Small small({"task.train.length=[3, 40]"});
  int64_t longest_seen = 0;
  for (const auto& e : draw_up_to(*small.task, 3, 8, 0, 200)) {
    EXPECT_GE(e.length, 3);
    EXPECT_GE(e.target.back(), 0);
    longest_seen = std::max(longest_seen, e.length);
  }
  EXPECT_EQ(longest_seen, 8);
}

}  // namespace
}  // namespace lrnn::training
