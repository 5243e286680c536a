#include "experiments/generate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "ops/torch.h"

namespace lrnn::experiments {
namespace {

model::ModelPtr small_language_model(const std::string& mixer) {
  const auto config = read_config(
      LRNN_SOURCE_DIR "/configs/tiny.yaml",
      {"model.mixer=" + mixer, "model.width=16", "model.layers=2", "model.init.std=0.5"});
  return std::make_shared<model::Model>(config.model, 50, 3);
}

// Token by token is the argmax of a forward over all that was said so far.
TEST(Generate, GreedyIsTheArgmaxOfTheWhole) {
  const torch::InferenceMode no_gradients;
  for (const char* mixer :
       {"{name: delta_product, heads: 2, householders: 2}", "{name: attention}"}) {
    const auto model = small_language_model(mixer);
    std::vector<int64_t> text = {3, 1, 4, 1, 5};
    std::vector<int64_t> said;
    GenerateOptions how;
    how.drawing.temperature = 0, how.tokens = 20;
    generate(*model, "float32", text, how,
             [&](int64_t, int64_t token) { return said.push_back(token), true; });
    ASSERT_EQ(said.size(), 20u);
    for (const int64_t token : said) {
      model::State state;
      const auto logits = model->forward(torch::tensor(text).unsqueeze(0), state);
      const auto row = logits[0][int64_t(text.size()) - 1];
      EXPECT_EQ(token, row.argmax().item<int64_t>()) << mixer;
      text.push_back(token);
    }
  }
}

// A draw depends on seed, sequence and place: others that end earlier change nothing.
TEST(Generate, SequencesDoNotDisturbEachOther) {
  const auto model = small_language_model("{name: delta_product, heads: 2}");
  const auto run = [&](uint64_t seed, int64_t end_of_first) {
    std::vector<std::vector<int64_t>> out(3);
    GenerateOptions how;
    how.sequences = 3, how.tokens = 12, how.seed = seed;
    generate(*model, "float32", {7}, how, [&](int64_t s, int64_t token) {
      out[size_t(s)].push_back(token);
      return s != 0 || int64_t(out[0].size()) < end_of_first;
    });
    return out;
  };
  const auto a = run(1, 12), b = run(1, 4), c = run(2, 12);
  EXPECT_EQ(b[0].size(), 4u);
  EXPECT_EQ(a[1], b[1]);
  EXPECT_EQ(a[2], b[2]);
  EXPECT_NE(a[0], a[1]);
  EXPECT_NE(a, c);
}

// Pages of memory that this process holds.
int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST(Generate, AHundredThousandTokensTakeTheMemoryOfAFew) {
  const auto model = small_language_model("{name: delta_product, heads: 2}");
  GenerateOptions how;
  how.tokens = 100000;
  int64_t said = 0, before = 0;
  generate(*model, "float32", {7}, how, [&](int64_t, int64_t) {
    if (++said == 10000) before = resident_bytes();
    return true;
  });
  EXPECT_EQ(said, 100000);
  EXPECT_LE(resident_bytes() - before, 1 << 20);
}

}  // namespace
}  // namespace lrnn::experiments
