#include "tasks/follow.h"
#include "tasks/keys.h"

namespace lrnn::tasks {
namespace {

constexpr int64_t kCycleShortest = 2;  // one step and the answer
constexpr int64_t kLargestCycle = 1000;

struct CycleConfig {
  int64_t cycle = 6, step = 1;
  TrainKeys<3, 40, kCycleShortest> train;
  EvalKeys<40, 256, 8192, kCycleShortest> eval;
  template <class Visit> void fields(Visit&& visit) {
    visit("cycle", cycle, "places on the circle", between(2, kLargestCycle));
    visit("step", step, "longest step, in either direction", between(1, kLargestCycle));
    visit_both(visit, train, eval);
  }

  // 1 stays, 2 .. step+1 go forwards, then come the ways back: the published ids.
  int64_t move(int64_t token) const { return token <= step + 1 ? token - 1 : step + 1 - token; }

  MutableTask make() const {
    const int64_t tokens = 2 * step + 1, places = tokens + 1;  // 0 is PAD; the first place's id
    AskLast q;
    q.automaton =
        automata::Automaton::from(cycle, places + cycle, [&](int64_t place, int64_t token) {
          if (token < 1 || token > tokens) return place;
          return ((place + move(token)) % cycle + cycle) % cycle;
        });
    q.automaton.symbol_names = {"PAD"};
    for (int64_t token = 1; token <= tokens; ++token) {
      q.automaton.symbol_names.push_back(cat(move(token) > 0 ? "+" : "", move(token)));
      q.letters.push_back(token);
    }
    for (int64_t place = 0; place < cycle; ++place) {
      q.automaton.symbol_names.push_back(cat("place", place));
      q.answer.push_back(places + place);
    }
    q.answers = cycle;
    q.shortest = kCycleShortest;
    q.draw = [tokens](Random& random, Range length) {
      std::vector<int64_t> steps(size_t(random.between(length.lo, length.hi) - 1));
      for (auto& token : steps) token = random.between(1, tokens);
      return steps;
    };
    return follow(std::move(q));
  }
};

}  // namespace

Entry entry_cycle_navigation(const char* name, const char* about) {
  return entry<CycleConfig>(name, about);
}

}  // namespace lrnn::tasks
