#include "experiments/identity.h"

#include <gtest/gtest.h>

namespace lrnn::experiments {
namespace {

Identity identity_of(const std::string& mixer, const std::string& more = {}) {
  return identity(load<model::ModelConfig>(
      Section::from_text("{mixer: {name: " + mixer + "}" + more + "}", "model")));
}

TEST(Identity, IsTheModelAndItsRange) {
  EXPECT_EQ(identity_of("delta_net").key, "delta_net [-1,1]");
  EXPECT_EQ(identity_of("delta_product, householders: 1, range: [0, 1]").key, "delta_net [0,1]")
      << "one factor is DeltaNet";
  EXPECT_EQ(identity_of("delta_product, householders: 1, range: [0, 1]").name, "DeltaNet [0,1]");
  EXPECT_EQ(identity_of("delta_product, householders: 3").key, "delta_product 3 [-1,1]");
  EXPECT_EQ(identity_of("delta_product, householders: 3").name, "DeltaProduct n_h=3 [-1,1]");
  EXPECT_EQ(identity_of("delta_product, householders: 2, forget_gate: true").key,
            "delta_product 2 gated [-1,1]");
  EXPECT_EQ(identity_of("mamba, range: [0, 1]").name, "Mamba [0,1]");
  EXPECT_EQ(identity_of("attention").name, "Transformer");
  EXPECT_EQ(identity_of("slstm").key, "slstm");
  EXPECT_EQ(identity_of("delta_net", ", hybrid: {every: 2, mixer: {name: attention}}").name,
            "DeltaNet + attention [-1,1]");
}

TEST(Identity, LeavesSizesOut) {
  EXPECT_EQ(identity_of("delta_net, heads: 2", ", layers: 1").key,
            identity_of("delta_net, heads: 4").key);
}

// Every mixer has a name for people; some are called as they are written.
TEST(Identity, IsThereForEveryMixer) {
  for (const auto& entry : mixers::all()) {
    const std::string name = entry.name, key = name == "delta_product" ? "delta_net" : name;
    EXPECT_TRUE(identity_of(name).key.starts_with(key)) << name;
    EXPECT_TRUE(name == "diagonal" || !identity_of(name).name.starts_with(name)) << name;
  }
}

}  // namespace
}  // namespace lrnn::experiments
