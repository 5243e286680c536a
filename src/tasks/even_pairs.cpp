#include "tasks/follow.h"
#include "tasks/keys.h"

namespace lrnn::tasks {
namespace {

constexpr int64_t kPairsShortest = 2;  // one letter and the answer
enum PairToken : int64_t { kPairPad, kLetterA, kLetterB, kPairTokens };

struct PairsConfig {
  TrainKeys<3, 40, kPairsShortest> train;
  EvalKeys<40, 256, 8192, kPairsShortest> eval;
  template <class Visit> void fields(Visit&& visit) { visit_both(visit, train, eval); }

  // State 0: nothing read. Then 1 + 2 * first + last, with a = 0 and b = 1.
  MutableTask make() const {
    AskLast q;
    q.automaton = automata::Automaton::from(5, kPairTokens, [](int64_t state, int64_t token) {
      if (token == kPairPad) return state;
      const int64_t letter = token - kLetterA, first = state == 0 ? letter : (state - 1) / 2;
      return 1 + 2 * first + letter;
    });
    q.automaton.state_names = {"empty", "a..a", "a..b", "b..a", "b..b"};
    q.automaton.symbol_names = {"PAD", "a", "b"};
    // An even number of changes is the same as equal ends; a says yes, b no.
    q.answer = {-1, kLetterA, kLetterB, kLetterB, kLetterA};
    q.letters = {kLetterA, kLetterB};
    q.answers = 2;
    q.shortest = kPairsShortest;
    q.draw = [](Random& random, Range length) {
      std::vector<int64_t> letters(size_t(random.between(length.lo, length.hi) - 1));
      for (auto& letter : letters) letter = random.between(kLetterA, kLetterB);
      return letters;
    };
    return follow(std::move(q));
  }
};

}  // namespace

Entry entry_even_pairs(const char* name, const char* about) {
  return entry<PairsConfig>(name, about);
}

}  // namespace lrnn::tasks
