#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "experiments/run.h"
#include "training/threads.h"
#include "training/trainer.h"

// Every file under configs/ is a model that trains and is evaluated: one small update each, and one
// small batch of the lengths it is tested on.
namespace lrnn::experiments {
namespace {

std::vector<std::string> config_files() {
  std::vector<std::string> out;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(LRNN_SOURCE_DIR "/configs"))
    // Of the language models only the plays are small, and have their data in the tree.
    if (entry.path().extension() == ".yaml" &&
        (entry.path().parent_path().filename() != "lm" || entry.path().stem() == "plays"))
      out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

class EveryConfig : public testing::TestWithParam<std::string> {};

TEST_P(EveryConfig, TrainsAndIsEvaluated) {
  const training::Threads one(1);  // more threads wait for each other longer than this takes
  const auto config = read_config(GetParam(), {"train.batch=2"});
  const auto task = tasks::make(config.task);
  const auto model = build(config, *task);
  training::Trainer trainer(*model, *task, config.train, 1);
  const auto update = trainer.update(0, 0);
  EXPECT_FALSE(update.skipped);
  EXPECT_TRUE(std::isfinite(update.loss));
  EXPECT_GT(update.grad_norm, 0);
  // At the start a model knows nothing: its loss is near that of a guess among all tokens.
  EXPECT_NEAR(update.loss, std::log(double(task->vocabulary())), 2.5);
  const auto e = training::evaluate(*model, *task, {.seed = 1, .samples = 2});
  EXPECT_EQ(e.sequences.count, 2);
  EXPECT_TRUE(std::isfinite(e.loss));
}

INSTANTIATE_TEST_SUITE_P(Files, EveryConfig, testing::ValuesIn(config_files()),
                         [](const auto& info) {
                           std::string name =
                               info.param.substr(sizeof(LRNN_SOURCE_DIR "/configs/") - 1);
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

// The sizes the paper's tables imply, for each model of the README of its repository.
TEST(ChomskyConfigs, HaveThePublishedSizes) {
  const std::vector<std::pair<std::string, std::vector<int64_t>>> sizes = {
      {"xlstm10", {219792, 221584, 222096}},   {"xlstm01", {215680, 217472, 217984}},
      {"mamba", {232448, 234240, 234752}},     {"mamba_2", {232448, 234240, 234752}},
      {"delta_net", {529856, 531648, 532160}}, {"delta_net_2", {529856, 531648, 532160}}};
  const char* tasks[] = {"parity", "mod_arithmetic", "mod_arithmetic_with_brackets"};
  for (const auto& [model, counts] : sizes)
    for (size_t i = 0; i < 3; ++i) {
      const auto config =
          read_config(cat(LRNN_SOURCE_DIR "/configs/chomsky/", tasks[i], "_", model, ".yaml"), {});
      const auto task = lrnn::tasks::make(config.task);
      EXPECT_EQ(model::Model::blank(config.model, task->vocabulary())->parameter_count(), counts[i])
          << tasks[i] << " " << model;
    }
}

}  // namespace
}  // namespace lrnn::experiments
