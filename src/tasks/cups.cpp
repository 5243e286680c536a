#include "tasks/follow.h"
#include "tasks/keys.h"

// Where is the ball, after swaps of cups.
namespace lrnn::tasks {
namespace {

constexpr int64_t kCupsShortest = 1;
constexpr int64_t kMostCups = 20;

struct CupsHelp {
  static constexpr auto kLength = "swaps in a training sequence";
  static constexpr auto kTargets = "ask where the ball is at the end, or after every swap (easier)";
};

struct CupsConfig {
  int64_t cups = 3;
  AskedKeys<CupsHelp, kCupsShortest> train;
  EvalKeys<40, 256, 8192, kCupsShortest> eval;
  template <class Visit> void fields(Visit&& visit) {
    visit("cups", cups, "one of them hides the ball", between(2, kMostCups));
    visit_both(visit, train, eval);
  }

  // Ids: the cups, which say where the ball starts and where it is; then one per pair of cups.
  MutableTask make() const {
    std::vector<std::pair<int64_t, int64_t>> swaps;
    for (int64_t a = 0; a < cups; ++a)
      for (int64_t b = a + 1; b < cups; ++b) swaps.emplace_back(a, b);
    AskLast q;
    // States: where the ball is, then: nothing is said yet, and: this is no game.
    const int64_t nothing = cups, broken = cups + 1;
    q.automaton = automata::Automaton::from(
        cups + 2, cups + int64_t(swaps.size()), [&](int64_t ball, int64_t token) {
          if ((token < cups) != (ball == nothing) || ball == broken) return broken;
          if (token < cups) return token;
          const auto [a, b] = swaps[size_t(token - cups)];
          return ball == a ? b : ball == b ? a : ball;
        });
    q.automaton.start = nothing;
    for (int64_t cup = 0; cup < cups; ++cup) {
      q.automaton.symbol_names.push_back(cat("cup", cup + 1));
      q.answer.push_back(cup);
    }
    q.answer.insert(q.answer.end(), {-1, -1});
    for (const auto& [a, b] : swaps) q.automaton.symbol_names.push_back(cat(a + 1, "<>", b + 1));
    for (int64_t token = 0; token < q.automaton.symbols; ++token) q.letters.push_back(token);
    q.answers = cups;
    q.shortest = kCupsShortest;
    q.beyond = -1;  // swaps count; the ball's first place does not
    if (train.on_the_way()) q.on_the_way = q.answer;
    q.draw = [n = cups, last = q.automaton.symbols - 1](Random& random, Range length) {
      std::vector<int64_t> tokens(size_t(random.between(length.lo, length.hi) + 1));
      tokens[0] = random.between(0, n - 1);
      for (size_t t = 1; t < tokens.size(); ++t) tokens[t] = random.between(n, last);
      return tokens;
    };
    return follow(std::move(q));
  }
};

}  // namespace

Entry entry_cups(const char* name, const char* about) { return entry<CupsConfig>(name, about); }

}  // namespace lrnn::tasks
