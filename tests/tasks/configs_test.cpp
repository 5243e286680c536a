#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include "tasks/task.h"

// Every file under configs/ names a task that there is, with keys and values it takes.
namespace lrnn::tasks {
namespace {

std::vector<std::string> files() {
  std::vector<std::string> out;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(LRNN_SOURCE_DIR "/configs"))
    if (entry.path().extension() == ".yaml") out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

class Configs : public testing::TestWithParam<std::string> {};

TEST_P(Configs, TheTaskIsMadeAndSamples) {
  const auto file = Section::from_file(GetParam());
  for (const char* key : {"seed", "task", "model", "train"}) EXPECT_TRUE(file.has(key)) << key;
  const auto at = file.child("task");
  const auto task = make(at);
  const bool text = at.text("name") == "text";
  // The corpora of language models are not in the tree, but for the plays.
  const bool here = !text || GetParam().ends_with("plays.yaml");
  if (here)
    for (const auto split : {Split::kTrain, Split::kEval})
      for (uint64_t i = 0; i < 20; ++i) {
        const auto e = task->sample(1, split, i);
        EXPECT_GE(e.target[e.target.size() - 1 - text], 0);
        EXPECT_LE(e.length, task->length(split).hi);
      }
  const auto resolved = find(at).resolve(at);
  const auto again = Section::from_text(YAML::Dump(resolved));
  EXPECT_TRUE(differences(resolved, find(again).resolve(again)).empty());
}

TEST_P(Configs, SaysWhatItStandsFor) {
  std::ifstream in(GetParam());
  std::string first;
  std::getline(in, first);
  EXPECT_EQ(first.rfind("# ", 0), 0u) << first;
}

INSTANTIATE_TEST_SUITE_P(Files, Configs, testing::ValuesIn(files()), [](const auto& info) {
  std::string name = info.param.substr(sizeof(LRNN_SOURCE_DIR "/configs/") - 1);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

// The twins of the published comparison differ in the range of the eigenvalues and nothing else.
TEST(ConfigPairs, TwinsDifferInTheRangeOnly) {
  const std::string root = LRNN_SOURCE_DIR "/configs/";
  std::vector<std::pair<std::string, std::string>> twins = {{"demo/parity_01", "demo/parity_11"}};
  for (const std::string folder : {"chomsky/", "chomsky/profile_p/", "quick/"})
    for (const std::string task : {"parity", "mod_arithmetic", "mod_arithmetic_with_brackets",
                                   "mod_arithmetic_with_brackets_mult"})
      for (const std::string model : {"delta_net", "mamba"})
        if (const auto stem = folder + task + "_" + model;
            std::filesystem::exists(root + stem + ".yaml"))
          twins.emplace_back(stem, stem + "_2");
  for (const std::string task : {"parity", "mod_arithmetic", "mod_arithmetic_with_brackets"})
    for (const char n : {'1', '2', '3', '4'})
      twins.emplace_back("deltaproduct/formal/" + task + "_n" + n + "_01",
                         "deltaproduct/formal/" + task + "_n" + n);
  EXPECT_EQ(twins.size(), 1u + 2 * 3 + 2 * 3 + 2 + 12);
  for (const auto& [a, b] : twins)
    EXPECT_EQ(differences(Section::from_file(root + a + ".yaml").node(),
                          Section::from_file(root + b + ".yaml").node()),
              std::vector<std::string>{"model.mixer.range: [0, 1] -> [-1, 1]"});
  EXPECT_EQ(differences(Section::from_file(root + "demo/addition_n1.yaml").node(),
                        Section::from_file(root + "demo/addition_n2.yaml").node()),
            std::vector<std::string>{"model.mixer.householders: 1 -> 2"});
}

// The documents name configs that are there.
TEST(Documents, NameConfigsThatExist) {
  std::string text;
  for (const char* page : {"/README.md", "/docs/tables.md"}) {
    std::ifstream in(std::string(LRNN_SOURCE_DIR) + page);
    text.append(std::istreambuf_iterator<char>(in), {});
  }
  int64_t found = 0;
  for (size_t at = 0; (at = text.find("configs/", at)) != std::string::npos; ++at) {
    const auto end = text.find_first_not_of(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.-", at);
    const auto name = text.substr(at, end - at);
    if (!name.ends_with(".yaml")) continue;
    EXPECT_TRUE(std::filesystem::exists(LRNN_SOURCE_DIR "/" + name)) << name;
    ++found;
  }
  EXPECT_GT(found, 60);
}

}  // namespace
}  // namespace lrnn::tasks
