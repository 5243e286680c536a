#include <algorithm>

#include "tasks/follow.h"
#include "tasks/keys.h"

namespace lrnn::tasks {
namespace {

constexpr int64_t kShortest = 3;  // a number, '=' and the answer
constexpr int64_t kLargestModulus = 100;
enum Token : int64_t { kPad, kPlus, kMinus, kTimes, kEquals, kNumbers };

// What a reader must remember of an expression: the sum of the finished terms, the product (with
// its sign) of the term being read, and what may come next. Everything is modulo m.
//
//   after a number   sum, term    m*m states
//   after '*'        sum, term    m*m
//   after '+'        sum          m
//   after '-'        sum          m
//   after '='        sum          m
//   not an expression             1
struct Reader {
  int64_t m;
  int64_t after_number(int64_t sum, int64_t term) const { return sum * m + term; }
  int64_t after_times(int64_t sum, int64_t term) const { return m * m + sum * m + term; }
  int64_t after_plus(int64_t sum) const { return 2 * m * m + sum; }
  int64_t after_minus(int64_t sum) const { return 2 * m * m + m + sum; }
  int64_t after_equals(int64_t sum) const { return 2 * m * m + 2 * m + sum; }
  int64_t broken() const { return 2 * m * m + 3 * m; }
  int64_t states() const { return broken() + 1; }

  int64_t step(int64_t state, int64_t token) const {
    const int64_t squares = m * m, number = token - kNumbers;
    if (state < squares) {
      const int64_t sum = state / m, term = state % m, value = (sum + term) % m;
      if (token == kTimes) return after_times(sum, term);
      if (token == kPlus) return after_plus(value);
      if (token == kMinus) return after_minus(value);
      if (token == kEquals) return after_equals(value);
    } else if (number >= 0) {
      const int64_t sum = state % m;
      if (state < 2 * squares) return after_number((state - squares) / m, state % m * number % m);
      if (state < after_minus(0)) return after_number(sum, number);
      if (state < after_equals(0)) return after_number(sum, (m - number) % m);
    }
    return broken();
  }
};

// The published rounding: lengths are odd, and the rounded range may begin one below.
std::vector<int64_t> draw(Random& random, Range length, int64_t m) {
  const int64_t hi = (length.hi + 1) / 2, lo = std::min((length.lo + 1) / 2, hi);
  const int64_t n = 2 * random.between(lo, hi) - 1;
  std::vector<int64_t> tokens(static_cast<size_t>(n - 1));
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] =
        i % 2 == 0 ? random.between(kNumbers, kNumbers + m - 1) : random.between(kPlus, kTimes);
  tokens.back() = kEquals;
  return tokens;
}

struct Help {
  static constexpr auto kLength = "shortest and longest training sequence";
  static constexpr auto kTargets =
      "ask for the value at the end, or also after every number (easier)";
};

struct Config {
  int64_t modulus = 5;
  AskedKeys<Help, kShortest> train;
  EvalKeys<40, 256, 8192, kShortest> eval;
  template <class Visit> void fields(Visit&& visit) {
    visit("modulus", modulus, "numbers are 0 .. modulus-1, and so is the answer",
          between(2, kLargestModulus));
    visit_both(visit, train, eval);
  }

  MutableTask make() const {
    const Reader reader{modulus};
    AskLast q;
    q.automaton =
        automata::Automaton::from(reader.states(), kNumbers + modulus,
                                  [&](int64_t s, int64_t token) { return reader.step(s, token); });
    q.automaton.start = reader.after_plus(0);
    q.automaton.symbol_names = {"PAD", "+", "-", "*", "="};
    q.answer.assign(static_cast<size_t>(reader.states()), -1);
    for (int64_t i = 0; i < modulus; ++i) {
      q.automaton.symbol_names.push_back(std::to_string(i));
      q.answer[static_cast<size_t>(reader.after_equals(i))] = kNumbers + i;
    }
    if (train.on_the_way()) {
      q.on_the_way = q.answer;
      for (int64_t sum = 0; sum < modulus; ++sum)
        for (int64_t term = 0; term < modulus; ++term)
          q.on_the_way[static_cast<size_t>(reader.after_number(sum, term))] =
              kNumbers + (sum + term) % modulus;
    }
    for (int64_t x = kPlus; x < kNumbers + modulus; ++x) q.letters.push_back(x);
    q.answers = modulus;
    q.shortest = kShortest;
    q.draw = [m = modulus](Random& random, Range length) { return draw(random, length, m); };
    return follow(std::move(q));
  }
};

}  // namespace

Entry entry_modular_arithmetic(const char* name, const char* about) {
  return entry<Config>(name, about);
}

}  // namespace lrnn::tasks
