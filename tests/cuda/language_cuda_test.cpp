#include <c10/cuda/CUDACachingAllocator.h>

#include "ops/gpu.h"
#include "ops/linear_cross_entropy/case.h"
#include "tests/close.h"
#include "tests/cuda/device.h"
#include "tests/cuda/same_updates.h"
#include "tests/training/random_text.h"
#include "training/evaluate.h"
#include "training/trainer.h"

// Language models on a GPU: the loss in chunks, several parts a batch, blocks that are run again.
namespace lrnn::training {
namespace {

using torch::Tensor;

struct LanguageOnGpu : OnGpu {};

constexpr int64_t kTokens = 2048, kLength = 128;  // 64 sequences: 2^24 logits

struct TrainedText {
  std::vector<Update> updates;
  std::vector<Tensor> weights, gradients;
  double evaluation = 0;
};

TrainConfig training_of(int64_t batch, int64_t parts, const std::string& precision = "bfloat16") {
  TrainConfig out;
  out.batch = batch, out.accumulate = parts, out.warmup = 0, out.clip = 1;
  out.precision = precision, out.recompute = "none";
  return out;
}

TrainedText train(const TrainConfig& config, bool record, torch::Device device = torch::kCUDA,
                  int64_t updates = 4, int64_t length = kLength, const std::string& more = "") {
  const RandomText task(kTokens, length);
  const auto of = load<model::ModelConfig>(
      Section::from_text("width: 64\nlayers: 2\ntied: true\nmlp: {hidden: 128}\n"
                         "mixer: {name: delta_net, heads: 2, key_dim: 32}\n" +
                         more));
  model::Model net(of, kTokens, 5);
  std::shared_ptr<void> stream;
  if (device.is_cuda()) stream = ops::gpu()->own_stream(), net.to(device);
  Trainer trainer(net, task, config, 1, record);
  TrainedText out;
  for (int64_t i = 0; i < updates; ++i) out.updates.push_back(trainer.update(i, i));
  for (const auto& p : net.parameters()) {
    out.weights.push_back(p.detach().cpu());
    out.gradients.push_back(p.grad().detach().to(torch::kCPU, torch::kFloat64));
  }
  out.evaluation =
      evaluate(net, task, {.seed = 3, .samples = 64, .precision = config.precision}).loss;
  return out;
}

void expect_same_bits(const TrainedText& a, const TrainedText& b) {
  expect_same_updates(a, b);
  EXPECT_EQ(a.evaluation, b.evaluation);
}

TEST_F(LanguageOnGpu, IsNearTheCpu) {
  for (const int64_t parts : {1, 4}) {
    const auto config = training_of(64, parts, "float32");
    const auto got = train(config, true), want = train(config, true, torch::kCPU);
    for (size_t i = 0; i < got.updates.size(); ++i)
      EXPECT_NEAR(got.updates[i].loss / want.updates[i].loss, 1, 1e-4) << parts << " parts";
    EXPECT_NEAR(got.evaluation / want.evaluation, 1, 1e-3);
  }
}

// Parts of unequal numbers of sequences have recordings of their own.
TEST_F(LanguageOnGpu, RecordingsGiveTheBitsOfTheirKernels) {
  for (const int64_t parts : {1, 4, 5})
    expect_same_bits(train(training_of(64, parts), true), train(training_of(64, parts), false));
}

TEST_F(LanguageOnGpu, WhatIsMadeAgainIsTheSame) {
  for (const char* what : {"cheap", "block"})
    for (const bool record : {true, false}) {
      auto again = training_of(64, 2);
      again.recompute = what;
      expect_same_bits(train(training_of(64, 2), record), train(again, record));
    }
}

// Shares of 32 parts are a power of two of those of one: the same roundings, so what differs is the
// order of a float32 sum.
TEST_F(LanguageOnGpu, SumsOfManyPartsAreFloat32) {
  constexpr int64_t kParts = 32, kShort = 17;
  const RandomText task(kTokens, kShort);
  auto config = training_of(1, 1);
  config.lr = 1e-30, config.clip = 0;  // the weights stay where they are
  const auto of = load<model::ModelConfig>(Section::from_text(
      "width: 64\nlayers: 1\nmlp: {hidden: 128}\nmixer: {name: delta_net, heads: 2, key_dim: 32}"));
  const auto stream = ops::gpu()->own_stream();
  model::Model net(of, kTokens, 5);
  net.to(torch::kCUDA);
  std::vector<Tensor> sums;
  {
    Trainer trainer(net, task, config, 1);
    for (int64_t i = 0; i < kParts; ++i) {
      trainer.update(i, i);
      size_t at = 0;
      for (const auto& p : net.parameters()) {
        if (i == 0) sums.push_back(torch::zeros_like(p, torch::kFloat64));
        sums[at++] += p.grad().to(torch::kFloat64) / double(kParts);
      }
    }
  }
  config.batch = config.accumulate = kParts;
  Trainer trainer(net, task, config, 1);
  trainer.update(0, 0);
  size_t at = 0;
  for (const auto& item : net.named_parameters())
    EXPECT_CLOSE_TO(item.key(), item.value().grad(), sums[at++], 2e-6);
}

// The logits of a chunk, the weight's sums and a little more, however many rows there are.
TEST_F(LanguageOnGpu, NeverHoldsAllLogits) {
  namespace allocator = c10::cuda::CUDACachingAllocator;
  constexpr int64_t V = 50257, D = 64, R = 20000, C = ops::LinearCrossEntropy::kRowsAtOnce;
  auto in = ops::make_linear_cross_entropy({.T = R, .D = D, .n = V},
                                           ops::Draw(torch::kBFloat16, torch::kCUDA));
  in.h.requires_grad_();
  in.weight = in.weight.to(torch::kFloat32).requires_grad_();
  const auto bytes = [] {
    return allocator::getDeviceStats(c10::cuda::current_device()).allocated_bytes[0];
  };
  allocator::resetPeakStats(c10::cuda::current_device());
  const int64_t before = bytes().current;
  ops::linear_cross_entropy(in).loss.backward();
  EXPECT_LE(bytes().peak - before, C * (V + 63) * 2 + 4 * V * D + (int64_t(64) << 20));
}

}  // namespace
}  // namespace lrnn::training
