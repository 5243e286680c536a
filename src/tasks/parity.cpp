#include "tasks/follow.h"
#include "tasks/keys.h"

namespace lrnn::tasks {
namespace {

constexpr int64_t kShortest = 2;  // one bit and the answer
enum Token : int64_t { kPad, kZero, kOne, kTokens };

std::vector<int64_t> draw(Random& random, Range length) {
  std::vector<int64_t> bits(static_cast<size_t>(random.between(length.lo, length.hi) - 1));
  for (auto& bit : bits) bit = random.between(kZero, kOne);
  return bits;
}

struct Help {
  static constexpr auto kLength = "shortest and longest training sequence";
  static constexpr auto kTargets = "ask for the parity at the end, or after every bit (easier)";
};

struct Config {
  AskedKeys<Help, kShortest> train;
  EvalKeys<40, 256, 8192, kShortest> eval;
  template <class Visit> void fields(Visit&& visit) { visit_both(visit, train, eval); }

  MutableTask make() const {
    AskLast q;
    q.automaton = automata::Automaton::from(
        2, kTokens, [](int64_t odd, int64_t token) { return odd ^ (token == kOne); });
    q.automaton.state_names = {"even", "odd"};
    q.automaton.symbol_names = {"PAD", "0", "1"};
    q.answer = {kZero, kOne};
    q.letters = {kZero, kOne};
    q.answers = 2;
    q.shortest = kShortest;
    if (train.on_the_way()) q.on_the_way = q.answer;
    q.draw = draw;
    return follow(std::move(q));
  }
};

}  // namespace

Entry entry_parity(const char* name, const char* about) { return entry<Config>(name, about); }

}  // namespace lrnn::tasks
