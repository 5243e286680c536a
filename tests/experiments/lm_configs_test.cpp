#include <gtest/gtest.h>

#include "experiments/run.h"

namespace lrnn::experiments {
namespace {

// The language models have the published sizes; their corpora need not be there for that.
TEST(LanguageModelConfigs, HaveThePublishedSizes) {
  const std::vector<std::pair<std::string, int64_t>> sizes = {
      {"deltaproduct_213M_n1_4k", 213802752}, {"deltaproduct_213M_n2_4k", 214095072},
      {"deltaproduct_213M_n3_4k", 213925632}, {"deltaproduct_392M_n1_4k", 392171520},
      {"deltaproduct_392M_n2_4k", 392318976}, {"deltaproduct_392M_n3_4k", 392392704},
      {"deltaproduct_805M_n1_4k", 805384704}, {"deltaproduct_805M_n2_4k", 806262780},
      {"deltaproduct_805M_n3_4k", 805777920}, {"deltaproduct_340M_n1_2k", 341594112},
      {"deltaproduct_392M_n1_2k", 392171520}, {"deltaproduct_392M_n2_2k", 392318976},
      {"deltaproduct_443M_n3_2k", 443043840}, {"gated_340M_n1_2k", 341791104},
      {"delta_net_340M_100B", 341594112},     {"delta_net_1300M_100B", 1365677056},
      {"mamba_370M_100B", 371516416},         {"python_213M_n2", 214095072}};
  for (const auto& [name, size] : sizes) {
    const auto config = read_config(cat(LRNN_SOURCE_DIR "/configs/lm/", name, ".yaml"), {});
    const auto task = tasks::make(config.task);
    EXPECT_EQ(model::Model::shapes(config.model, task->vocabulary())->parameter_count(), size)
        << name;
  }
}

// Twins of our own comparison differ by less than a part in a thousand.
TEST(LanguageModelConfigs, TheSmallTwinsAreEquallyLarge) {
  std::vector<int64_t> sizes;
  for (const char* name : {"delta_net_01", "n1", "n2", "n3"}) {
    const auto config =
        read_config(cat(LRNN_SOURCE_DIR "/configs/lm/python_40M_", name, ".yaml"), {});
    const auto task = tasks::make(config.task);
    sizes.push_back(model::Model::shapes(config.model, task->vocabulary())->parameter_count());
    EXPECT_NEAR(double(sizes.back()), double(sizes[0]), 1e-3 * double(sizes[0])) << name;
  }
}

}  // namespace
}  // namespace lrnn::experiments
