#include "training/flops.h"

#include <gtest/gtest.h>

#include "base/config.h"

namespace lrnn::training {
namespace {

double giga(int64_t width, int64_t heads, int64_t householders, bool tied, int64_t hidden) {
  const auto config = load<model::ModelConfig>(Section::from_text(
      cat("width: ", width, "\nlayers: 24\ntied: ", tied ? "true" : "false",
          "\nmlp: {hidden: ", hidden, "}\nmixer: {name: delta_product, heads: ", heads,
          ", key_dim: 128, householders: ", householders, "}")));
  return flops_per_token(*model::Model::shapes(config, 32000), 2048) / 1e9;
}

// The models of the papers, worked out by hand from their weights.
TEST(Flops, OfTheModelsOfThePapers) {
  EXPECT_NEAR(giga(768, 8, 1, true, 2048), 1.398, 5e-4);
  EXPECT_NEAR(giga(1024, 8, 1, true, 2816), 2.164, 5e-4);
  EXPECT_NEAR(giga(1024, 8, 2, true, 2816), 2.543, 5e-4);
  EXPECT_NEAR(giga(1024, 6, 3, true, 2816), 2.552, 5e-4);
  EXPECT_NEAR(giga(1536, 16, 1, true, 4096), 5.062, 5e-4);
  EXPECT_NEAR(giga(2048, 16, 1, false, 5632), 8.030, 5e-4);
}

// A table that is only looked up is no product; attention costs more in longer sequences.
TEST(Flops, CountWhatIsMultiplied) {
  const auto of = [](const std::string& more, int64_t length) {
    const auto config = load<model::ModelConfig>(
        Section::from_text("width: 64\nlayers: 1\nmlp: {name: none}\n" + more));
    return flops_per_token(*model::Model::shapes(config, 1000), length);
  };
  const std::string attention = "mixer: {name: attention, heads: 1}\n";
  EXPECT_EQ(of(attention + "tied: true", 8), of(attention + "tied: false", 8));
  EXPECT_NEAR(of(attention, 1024) - of(attention, 512), 6 * 64 * 512, 6 * 512);
}

TEST(Flops, PeaksAreThoseWeMeasured) {
  EXPECT_EQ(product_flops("NVIDIA H200"), 790e12);
  EXPECT_FALSE(product_flops("NVIDIA GeForce RTX 3060"));
}

}  // namespace
}  // namespace lrnn::training
