#pragma once
#include <functional>
#include <initializer_list>
#include <numeric>
#include <string>
#include <utility>
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
  void say(std::initializer_list<int64_t> tokens) {
    for (const int64_t token : tokens) say(token);
  }
  void ask(int64_t token, int64_t answer) {
    out.input.push_back(token), out.target.push_back(answer);
  }
};

// Ids where each of n holds one of n things: who holds, what is held, then the words between them.
struct HolderIds {
  int64_t n;
  int64_t holder(int64_t i) const { return i; }
  int64_t thing(int64_t i) const { return n + i; }
  int64_t word(int64_t i) const { return 2 * n + i; }
};

// 0 .. n-1 in an order of their own.
inline std::vector<int64_t> shuffled(Random& random, int64_t n) {
  std::vector<int64_t> out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  for (size_t i = out.size(); i-- > 1;) std::swap(out[i], out[size_t(random.below(i + 1))]);
  return out;
}
// Two different ones of 0 .. n-1.
inline std::pair<int64_t, int64_t> two_of(Random& random, int64_t n) {
  const int64_t a = random.between(0, n - 1), other = random.between(0, n - 2);
  return {a, other + (other >= a)};
}

}  // namespace lrnn::tasks
