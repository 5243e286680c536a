#include "training/estimate.h"

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/cuda/lm_shapes.h"
#include "tests/training/random_text.h"
#include "training/trainer.h"

namespace lrnn::training {
namespace {

// Counts the bytes of the tensors that are made while it is the one in charge.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t n) override {
    auto* const block = static_cast<std::byte*>(std::aligned_alloc(kHead, (n / kHead + 2) * kHead));
    *reinterpret_cast<size_t*>(block) = n;
    peak = std::max(peak, live += double(n));
    return {block + kHead, block + kHead, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, size_t count) const override {
    default_copy_data(to, from, count);
  }
  static inline double live = 0, peak = 0;

 private:
  static constexpr size_t kHead = 64;
  static void give_back(void* data) {
    auto* const block = static_cast<std::byte*>(data) - kHead;
    live -= double(*reinterpret_cast<size_t*>(block));
    std::free(block);
  }
};

class Counted {
 public:
  Counted() : before_(c10::GetCPUAllocator()) {
    c10::SetCPUAllocator(&counting_, 1);
    CountingAllocator::live = CountingAllocator::peak = 0;
  }
  ~Counted() { c10::SetCPUAllocator(before_, 1); }
  double live() const { return CountingAllocator::live; }
  double peak() const { return CountingAllocator::peak; }

 private:
  static inline CountingAllocator counting_;
  c10::Allocator* before_;
};

struct Case {
  const char *name, *task, *model;
};

class Estimates : public testing::TestWithParam<Case> {};

// Against what the tensors of two updates really take: no more than twice, no less than half.
TEST_P(Estimates, AreHonest) {
  const auto task = tasks::make(Section::from_text(GetParam().task));
  const auto config = load<model::ModelConfig>(Section::from_text(GetParam().model));
  TrainConfig train;
  train.batch = 32;
  const auto shapes = model::Model::shapes(config, task->vocabulary());
  const auto estimate = estimate_memory(*shapes, *task, train);

  const Counted counted;
  model::Model model(config, task->vocabulary(), 1);
  Trainer trainer(model, *task, train, 1);
  const double fixed = counted.live();  // without the copy for a checkpoint
  EXPECT_NEAR(estimate.weights + estimate.gradients + estimate.optimizer / 2, fixed, 0.02 * fixed);

  for (int64_t step = 0; step < 2; ++step) trainer.update(step, step);
  const double batch = counted.peak() - fixed;
  EXPECT_LT(estimate.batch, 2 * batch);
  EXPECT_GT(estimate.batch, batch / 2);
}

constexpr const char* kGroup = "{name: group, group: S3, train: {length: 64}}";
INSTANTIATE_TEST_SUITE_P(
    OfABatch, Estimates,
    testing::Values(
        Case{"mamba", "{name: parity, train: {length: [20, 40], targets: all}}",
             "{width: 64, mixer: {name: mamba}, mlp: {name: none}}"},
        Case{"delta_net", kGroup, "{width: 64, mixer: {name: delta_net}}"},
        Case{"attention", kGroup, "{width: 64, mixer: {name: attention}}"},
        Case{"delta_product", kGroup,
             "{width: 64, layers: 3, mixer: {name: delta_product, householders: 2}}"},
        Case{"mlstm", kGroup, "{width: 64, layers: 2, mixer: {name: mlstm}, mlp: {name: none}}"},
        Case{"matrix_product", kGroup,
             "{width: 64, layers: 1, mixer: {name: matrix_product}, mlp: {name: none}}"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Estimate, GrowsWithWhatItIsMadeOf) {
  const auto of = [](const std::string& task, const std::string& model, const TrainConfig& train,
                     bool gpu = false) {
    const auto t = tasks::make(Section::from_text(task));
    const auto config = load<model::ModelConfig>(Section::from_text(model));
    return estimate_memory(*model::Model::shapes(config, t->vocabulary()), *t, train, gpu);
  };
  const std::string model = "{width: 64, mixer: {name: delta_net}}";
  TrainConfig train, parts, narrow;
  parts.accumulate = 8, narrow.precision = "bfloat16";
  const auto usual = of(kGroup, model, train);
  EXPECT_NEAR(of(kGroup, model, parts).batch, usual.batch / 8, usual.batch / 50);
  EXPECT_LT(of(kGroup, model, narrow).batch, usual.batch);
  EXPECT_GT(of(kGroup, model, narrow, true).weights, usual.weights);
  EXPECT_EQ(of(kGroup, "{width: 64, dtype: float64, mixer: {name: delta_net}}", train).weights,
            2 * usual.weights);
  // Lengths that nobody can draw an example of are known all the same.
  const auto longest = of("{name: parity, train: {length: 1e8}}", model, train);
  const auto long_one = of("{name: parity, train: {length: 1e5}}", model, train);
  EXPECT_NEAR(longest.batch / long_one.batch, 1000, 20);
  // Attention on a GPU keeps its scores.
  const std::string attention = "{width: 64, mixer: {name: attention}}";
  EXPECT_GT(of(kGroup, attention, train, true).batch, 1.2 * of(kGroup, attention, train).batch);
}

// What training language models took on a GPU, as it was measured there.
TEST(Estimate, IsNearWhatLanguageModelsTookOnAGpu) {
  std::ifstream file(LRNN_SOURCE_DIR "/results/bench/lm.jsonl");
  int compared = 0;
  for (std::string text; std::getline(file, text);) {
    const auto line = nlohmann::json::parse(text);
    if (line.value("bench", "") != "lm" || line.value("who", "") != "lrnn") continue;
    for (const auto& shape : bench::kShapes) {
      if (line["model"].get<std::string>() != shape.name) continue;
      TrainConfig train;
      train.batch = line["batch"].get<int64_t>(),
      train.accumulate = line["accumulate"].get<int64_t>();
      train.precision = "bfloat16", train.recompute = line["recompute"].get<std::string>();
      const RandomText task(bench::kVocabulary, line["length"].get<int64_t>());
      const auto model = model::Model::shapes(bench::config_of(shape), bench::kVocabulary);
      const double ratio = estimate_memory(*model, task, train, true).total() /
                           (line["peak_gib"].get<double>() * double(int64_t{1} << 30));
      EXPECT_GT(ratio, 0.8) << text;
      EXPECT_LT(ratio, 1.6) << text;
      ++compared;
    }
  }
  EXPECT_GE(compared, 5);
}

// A petabyte of weights, and none of it taken.
TEST(Estimate, TakesNoMemoryItself) {
  const Counted counted;
  const auto task = tasks::make(Section::from_text(kGroup));
  const auto config = load<model::ModelConfig>(
      Section::from_text("{width: 1e7, mixer: {name: attention}, mlp: {hidden: 1e6}}"));
  const auto shapes = model::Model::shapes(config, task->vocabulary());
  EXPECT_GT(estimate_memory(*shapes, *task, TrainConfig()).total(), 1e15);
  EXPECT_LT(counted.peak(), 1e4);
}

}  // namespace
}  // namespace lrnn::training
