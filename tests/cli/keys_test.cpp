#include "cli/keys.h"

#include <gtest/gtest.h>

#include <set>

namespace lrnn::cli {
namespace {

TEST(Keys, AreThoseOfEveryMixerAndTask) {
  std::set<std::string> names;
  for (const auto& group : all_keys())
    for (const auto& key : group.keys) {
      names.insert(group.name + ":" + key.name);
      EXPECT_FALSE(key.help.empty()) << key.name;
      EXPECT_FALSE(key.type.empty()) << key.name;
    }
  for (const char* name : {":seed", ":train.steps", ":model.mlp.hidden", "mamba:model.mixer.expand",
                           "delta_net:model.mixer.heads", "parity:task.train.length",
                           "automaton:task.regex", "group:task.eval.share"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(Keys, TellProgramsTheirLimits) {
  const auto json = [](const std::string& name) {
    for (const auto& group : all_keys())
      for (const auto& key : group.keys)
        if (key.name == name) return key_json(key).dump();
    return std::string("no such key");
  };
  EXPECT_EQ(json("train.steps"),
            R"({"key":"train.steps","type":"whole number","default":20000,"takes":"at least 1",)"
            R"("least":1.0,"help":"optimiser updates"})");
  EXPECT_EQ(json("train.lr_floor"),
            R"({"key":"train.lr_floor","type":"number","default":0.001,"takes":"between 0 and 1",)"
            R"("least":0.0,"most":1.0,"help":"the cosine ends at this fraction of lr"})");
  EXPECT_EQ(json("train.schedule"),
            R"({"key":"train.schedule","type":"text","default":"cosine",)"
            R"("takes":"one of cosine, constant","choices":["cosine","constant"],)"
            R"("help":"what the rate does after the warm-up"})");
  EXPECT_NE(json("train.eps").find(R"("above":0.0)"), std::string::npos);
  EXPECT_NE(json("train.betas").find(R"("default":[0.9,0.999])"), std::string::npos);
  EXPECT_NE(json("train.betas").find(R"("below":1.0)"), std::string::npos);
}

TEST(Keys, MakeAPage) {
  const auto page = keys_markdown(all_keys());
  EXPECT_NE(page.find("| `train.steps` | `20000` | whole number: at least 1 | optimiser updates |"),
            std::string::npos);
  EXPECT_NE(page.find("### mamba\n\nMamba: "), std::string::npos);
  EXPECT_NE(page.find("| `model.mixer.range` | `[-1, 1]` | range: [0, 1] or [-1, 1] |"),
            std::string::npos);
  EXPECT_NE(page.find("| `task.regex` | `\"\"` | text |"), std::string::npos);
  EXPECT_EQ(page.find("\n\n\n"), std::string::npos);
  EXPECT_EQ(page.back(), '\n');
}

TEST(Bytes, ArePrintedForPeople) {
  EXPECT_EQ(bytes(0), "0 B");
  EXPECT_EQ(bytes(999), "999 B");
  EXPECT_EQ(bytes(1234), "1.2 kB");
  EXPECT_EQ(bytes(6.64e9), "6.6 GB");
  EXPECT_EQ(bytes(640e6), "640 MB");
  EXPECT_EQ(bytes(999.7e6), "1.0 GB");
  EXPECT_EQ(bytes(3e19), "30000 PB");
}

}  // namespace
}  // namespace lrnn::cli
