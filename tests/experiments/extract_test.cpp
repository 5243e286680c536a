#include "experiments/extract.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "experiments/model_oracle.h"
#include "ops/torch.h"

namespace lrnn::experiments {
namespace {

using automata::Question;
using automata::Word;

Word random_word(Random& random, int64_t length, int64_t symbols) {
  Word out(size_t(length), 0);
  for (auto& x : out) x = random.between(0, symbols - 1);
  return out;
}

// A word has one answer, wherever it is cut into what was read before and what is read now, and
// whatever it is asked together with: that of a plain forward. For every mixer.
TEST(ModelOracle, AnswersAsTheModelDoes) {
  torch::InferenceMode no_gradients;
  for (const auto& mixer : mixers::all()) {
    SCOPED_TRACE(mixer.name);
    for (const std::string what : {"{name: group, group: S3}", "{name: automaton, group: Z5}"}) {
      const auto task = tasks::make(Section::from_text(what, "task"));
      model::ModelConfig config;
      config.width = 12, config.layers = 2;
      config.mixer = Section::from_text(cat("{name: ", mixer.name, "}"), "mixer");
      config.init.gain = 3;
      model::Model model(config, task->vocabulary(), 5);
      ModelOracle oracle(model, *task);
      Random random(3, 0, 0);
      std::vector<Word> words;
      std::vector<Question> questions;
      for (int64_t i = 0; i < 40; ++i) {
        words.push_back(random_word(random, random.between(1, 9), oracle.symbols()));
        const auto cut = random.between(0, int64_t(words.back().size()) - 1);
        questions.push_back({{words.back().begin(), words.back().begin() + cut},
                             {words.back().begin() + cut, words.back().end()}});
      }
      const auto last = oracle.last(questions);
      const auto every = oracle.every(words);
      const auto letters = task->letters();
      for (size_t i = 0; i < words.size(); ++i) {
        auto tokens = task->before_word();
        for (const int64_t x : words[i]) tokens.push_back(letters[size_t(x)]);
        model::State state;
        const auto logits = model.forward(torch::tensor(tokens).unsqueeze(0), state)[0];
        EXPECT_EQ(last[i], every[i].back());
        for (size_t t = 0; t < words[i].size(); ++t) {
          const auto row = logits[int64_t(task->before_word().size() + t)];
          EXPECT_EQ(every[i][t], row.argmax().item<int64_t>());
        }
      }
    }
  }
}

// Nobody asks after "2 +", and after "2 =" the model says something.
TEST(ModelOracle, AsksWhereTheTaskDoes) {
  const auto task =
      tasks::make(Section::from_text("{name: modular_arithmetic, modulus: 3}", "task"));
  model::ModelConfig config;
  config.width = 12, config.layers = 1;
  config.mixer = Section::from_text("{name: delta_net, heads: 2}", "mixer");
  model::Model model(config, task->vocabulary(), 5);
  ModelOracle oracle(model, *task);
  std::map<std::string, int64_t> letter;
  const auto letters = task->letters();
  for (size_t x = 0; x < letters.size(); ++x) letter[task->word(letters[x])] = int64_t(x);
  const Word plus = {letter.at("2"), letter.at("+")}, equals = {letter.at("2"), letter.at("=")};
  EXPECT_EQ(oracle.empty(), automata::kUnasked);
  EXPECT_EQ(oracle.last({{{}, plus}})[0], automata::kUnasked);
  EXPECT_GE(oracle.last({{{}, equals}})[0], 0);
  const auto every = oracle.every({equals, plus});
  EXPECT_EQ(every[0][0], automata::kUnasked);
  EXPECT_GE(every[0][1], 0);
  EXPECT_EQ(every[1][1], automata::kUnasked);
}

}  // namespace
}  // namespace lrnn::experiments
