#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "tasks/task.h"

// For tasks that are more than an automaton and a question: one function draws the whole example.
namespace lrnn::tasks {

struct Tell {
  std::vector<std::string> words;  // one per token id
  Score score = Score::kAnswer;
  int64_t answers = 0;  // how many different ones: chance is 1 in so many; 0: nobody guesses it
  int64_t shortest = 1;
  std::function<Example(Random&, Range)> draw;
};
std::shared_ptr<Task> tell(Tell story);

// Builds an example token by token.
struct Writer {
  Example out;
  void say(int64_t token) { out.input.push_back(token), out.target.push_back(-1); }
  void ask(int64_t token, int64_t answer) {
    out.input.push_back(token), out.target.push_back(answer);
  }
};

}  // namespace lrnn::tasks
