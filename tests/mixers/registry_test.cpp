#include <gtest/gtest.h>

#include "mixers/mixer.h"

namespace lrnn::mixers {
namespace {

std::string hint_for(const std::string& name) {
  try {
    resolve(Section::from_text("name: " + name, "x.yaml"));
    return "no error";
  } catch (const Error& e) {
    return e.hint();
  }
}

TEST(Registry, KnowsWhatANameMeant) {
  for (const char* name : {"deltanet", "DeltaNet", "delta-net", "'Delta Net'", "delta_nte"})
    EXPECT_EQ(hint_for(name), "did you mean 'delta_net'?") << name;
  EXPECT_EQ(hint_for("RWKV-7"), "did you mean 'rwkv7'?");
  EXPECT_EQ(hint_for("mambo"), "did you mean 'mamba'?");
  EXPECT_EQ(hint_for("transformer"), "");
}

// The default of every key is a value that it takes, and a config of all of them is read back.
TEST(Registry, DefaultsAreWithinTheLimits) {
  for (const auto& mixer : all()) {
    YAML::Node node;
    node["name"] = mixer.name;
    for (const auto& key : mixer.keys()) node[key.name] = key.standard;
    const auto text = YAML::Dump(node);
    EXPECT_EQ(YAML::Dump(resolve(Section::from_text(text))), text);
  }
}

}  // namespace
}  // namespace lrnn::mixers
