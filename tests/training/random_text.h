#pragma once
#include <string>

#include "base/random.h"
#include "tasks/task.h"

// Windows of random tokens with the next token as the target of each: what a language model's
// training costs, without a corpus.
namespace lrnn {

class RandomText final : public tasks::Task {
 public:
  RandomText(int64_t vocabulary, int64_t length) : vocabulary_(vocabulary) {
    train_length = eval_length = {length, length};
    eval_samples = 8;
  }
  int64_t vocabulary() const override { return vocabulary_; }
  double chance() const override { return 1 / double(vocabulary_); }
  tasks::Score score() const override { return tasks::Score::kPrefix; }
  using Task::sample;
  tasks::Example sample(uint64_t seed, tasks::Split split, uint64_t index,
                        Range length) const override {
    Random random(seed, split == tasks::Split::kTrain ? 1 : 2, index);
    tasks::Example out;
    out.length = length.hi;
    for (int64_t i = 0; i < length.hi; ++i)
      out.input.push_back(int64_t(random.below(uint64_t(vocabulary_))));
    out.target.assign(out.input.begin() + 1, out.input.end());
    out.target.push_back(-1);
    return out;
  }
  std::string word(int64_t token) const override { return std::to_string(token); }

 private:
  int64_t vocabulary_;
};

}  // namespace lrnn
