#pragma once
#include <map>
#include <optional>

#include "automata/learn/oracle.h"
#include "model/model.h"
#include "tasks/task.h"

namespace lrnn::experiments {

// A model as somebody to ask about words of its task's letters: it answers with a token. Where the
// task never asks, neither do we; the empty word, after which a model has said nothing, has the
// task's own answer. Words go through the model together, and behind a beginning that was read
// before only the rest of a word is read.
class ModelOracle final : public automata::Oracle {
 public:
  // Of a task that has an automaton of its own or asks after every letter.
  ModelOracle(model::Model& model, const tasks::Task& task);

  int64_t symbols() const override { return int64_t(letters_.size()); }
  int64_t empty() const override { return empty_; }
  std::vector<int64_t> last(const std::vector<automata::Question>& questions) override;
  std::vector<std::vector<int64_t>> every(const std::vector<automata::Word>& words) override;

 private:
  using Word = automata::Word;

  // Whether the task asks after the word.
  bool asks(const Word& before, const Word& after) const;
  // Reads the words and keeps the states they leave behind.
  void keep(std::vector<Word> words);
  // What the words left behind, row by row; equal words may come several times.
  model::State held(const std::vector<Word>& words) const;
  torch::Tensor tokens(const std::vector<const Word*>& words, size_t from, size_t to) const;

  model::Model& model_;
  std::vector<int64_t> letters_, before_;
  std::optional<tasks::Followed> own_;
  int64_t empty_;
  std::map<Word, model::State> kept_;
};

}  // namespace lrnn::experiments
