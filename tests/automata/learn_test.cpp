#include "automata/learn/learn.h"

#include <gtest/gtest.h>

#include "automata/learn/tree.h"
#include "automata/read/source.h"
#include "automata/read/text_format.h"
#include "base/error.h"
#include "base/random.h"

namespace lrnn::automata {
namespace {

// An automaton that says what it is asked, and counts.
class Known final : public Oracle {
 public:
  explicit Known(Moore m) : m_(std::move(m)) {}
  int64_t symbols() const override { return m_.automaton.symbols; }
  int64_t empty() const override { return m_.answer_to({}); }
  std::vector<int64_t> last(const std::vector<Question>& questions) override {
    std::vector<int64_t> out;
    for (const auto& q : questions) {
      Word word = q.before;
      word.insert(word.end(), q.after.begin(), q.after.end());
      out.push_back(answer(word));
    }
    return out;
  }
  std::vector<std::vector<int64_t>> every(const std::vector<Word>& words) override {
    std::vector<std::vector<int64_t>> out;
    for (const auto& w : words) {
      auto& answers = out.emplace_back();
      int64_t state = m_.automaton.start;
      Word read;
      for (const int64_t x : w) {
        state = m_.automaton.step(state, x);
        read.push_back(x);
        answers.push_back(int64_t(read.size()) < wrong_from ? m_.answer[at(state)] : answer(read));
      }
    }
    return out;
  }
  int64_t wrong_from = 1 << 30;  // letters: from there on its answers are noise

 private:
  int64_t answer(const Word& word) const {
    if (int64_t(word.size()) < wrong_from) return m_.answer_to(word);
    uint64_t mixed = 0;
    for (const int64_t x : word) mixed = Random(mixed, 3, uint64_t(x)).bits();
    return int64_t(mixed % 2);
  }
  Moore m_;
};

Draw uniform(int64_t symbols) {
  return [symbols](int64_t length, uint64_t number) {
    Random random(7, uint64_t(length), number);
    Word word(at(length));
    for (auto& x : word) x = random.between(0, symbols - 1);
    return word;
  };
}

// Whether it is the one that was asked: same table, same answers.
void expect_found(const Moore& truth, const LearnOptions& options = {.longest = 100}) {
  Known oracle(truth);
  const auto learnt = learn(oracle, uniform(truth.automaton.symbols), options);
  const auto want = minimal(truth);
  EXPECT_EQ(int(learnt.ended), int(Ended::kAgreed));
  EXPECT_EQ(learnt.machine.automaton.next, want.automaton.next);
  EXPECT_EQ(learnt.machine.answer, want.answer);
  EXPECT_FALSE(learnt.difference);
  EXPECT_EQ(learnt.longest, options.longest);
  for (const auto& row : learnt.agreement) EXPECT_EQ(row.equal, row.words);
}

Moore random_machine(uint64_t seed, int64_t states, int64_t symbols, int64_t answers) {
  Random random(91, 0, seed);
  Moore out;
  out.automaton = Automaton::from(states, symbols,
                                  [&](int64_t, int64_t) { return random.between(0, states - 1); });
  for (int64_t s = 0; s < states; ++s) out.answer.push_back(random.between(0, answers - 1));
  return out;
}

Automaton group_of(const std::string& name, const std::string& letters) {
  Source source;
  source.group = name, source.letters = letters;
  return load(source).automaton;
}

TEST(Learn, FindsRandomMinimalAutomata) {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    Random random(92, 0, seed);
    const int64_t states = random.between(1, 60), symbols = random.between(1, 4);
    expect_found(random_machine(seed, states, symbols, random.between(1, 2) * 2));
  }
}

TEST(Learn, FindsGroups) {
  for (const std::string name : {"S3", "S4", "A5", "S5"})
    for (const std::string letters : {"all", "generators"}) {
      SCOPED_TRACE(name + " " + letters);
      const auto a = group_of(name, letters);
      Moore truth{a, {}};
      // Elements, and a yes or no that tells little of them.
      for (int64_t s = 0; s < a.states; ++s) truth.answer.push_back(s);
      expect_found(truth);
      for (int64_t s = 0; s < a.states; ++s) truth.answer[at(s)] = s == a.start;
      expect_found(truth);
    }
}

// Every example of the suite is minimal or becomes so.
TEST(Learn, FindsTheExamples) {
  for (const auto& e : examples()) {
    SCOPED_TRACE(e.name);
    const auto a = e.make();
    Moore truth{a, {}};
    for (int64_t s = 0; s < a.states; ++s)
      truth.answer.push_back(e.recogniser ? int64_t(a.accept[at(s)]) : s);
    expect_found(truth);
  }
}

TEST(Learn, SaysTheSameEveryTime) {
  const auto truth = random_machine(5, 40, 2, 2);
  Known one(truth), two(truth);
  const auto a = learn(one, uniform(2), {.longest = 50}),
             b = learn(two, uniform(2), {.longest = 50});
  EXPECT_EQ(a.asked, b.asked);
  EXPECT_EQ(a.machine.automaton.next, b.machine.automaton.next);
}

// Right for a while and noise then: the automaton is still the best that can be said.
TEST(Learn, ReturnsWhatHoldsForAWhile) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const auto truth = random_machine(seed, 6, 2, 2);
    Known oracle(truth);
    oracle.wrong_from = 60;
    const auto learnt = learn(oracle, uniform(2), {.longest = 80});
    EXPECT_EQ(int(learnt.ended), int(Ended::kNoBetter));
    EXPECT_EQ(learnt.machine.automaton.next, minimal(truth).automaton.next);
    ASSERT_TRUE(learnt.difference);
    EXPECT_GE(learnt.difference->word.size(), 60u);
    EXPECT_LT(learnt.difference->word.size(), 70u);
    EXPECT_NE(learnt.difference->answers.back(), learnt.machine.answer_to(learnt.difference->word));
    for (const auto& row : learnt.agreement) EXPECT_EQ(row.equal == row.words, row.length < 60);
  }
}

TEST(Learn, EndsWithItsBudget) {
  const auto truth = random_machine(11, 60, 3, 2);
  {
    Known oracle(truth);
    const auto learnt = learn(oracle, uniform(3), {.states = 10, .longest = 40});
    EXPECT_EQ(int(learnt.ended), int(Ended::kStates));
    EXPECT_LE(learnt.machine.automaton.states, 10);
    EXPECT_TRUE(learnt.difference);
    EXPECT_EQ(learnt.longest, 40);
  }
  {
    Known oracle(truth);
    const auto learnt = learn(oracle, uniform(3), {.words = 500, .longest = 40});
    EXPECT_EQ(int(learnt.ended), int(Ended::kWords));
    EXPECT_LT(learnt.asked, 2000);
  }
  {
    Known oracle(truth);
    const auto learnt = learn(oracle, uniform(3), {.seconds = 0, .longest = 40});
    EXPECT_EQ(int(learnt.ended), int(Ended::kSeconds));
    EXPECT_EQ(learnt.machine.automaton.states, 1);
  }
  // More states than its answers show: one is left out, and said to be.
  Known oracle(Moore{group_of("S3", "all"), {0, 1, 2, 3, 4, 5}});
  EXPECT_EQ(int(learn(oracle, uniform(6), {.states = 5, .longest = 9}).ended), int(Ended::kStates));
}

TEST(Moore, PartsOnTheShortestWord) {
  auto a = random_machine(3, 30, 2, 3);
  EXPECT_FALSE(first_difference(a, minimal(a)));
  auto b = minimal(a);
  b.answer[at(b.automaton.states - 1)] = 9;
  const auto word = first_difference(a, b);
  ASSERT_TRUE(word);
  EXPECT_EQ(b.answer_to(*word), 9);
  for (int64_t s = 0; s + 1 < b.automaton.states; ++s) EXPECT_NE(b.answer[at(s)], 9);
}

TEST(Moore, NamesItsStatesByTheirAnswers) {
  Moore m{Automaton::from(5, 1, [](int64_t s, int64_t) { return (s + 1) % 5; }), {0, 1, 0, 2, 0}};
  const std::vector<std::string> names = {"x", "x#2", "z"};
  auto a = named(m, [&](int64_t i) { return names[at(i)]; });
  EXPECT_EQ(a.state_names, (std::vector<std::string>{"x", "x#2", "x#3", "z", "x#4"}));
  EXPECT_TRUE(a.accept.empty());
  EXPECT_EQ(from_json(to_json(a), "it").next, a.next);
  m.answer = {0, 1, 0, 1, 0};
  a = named(m, [](int64_t i) { return i ? "accept" : "reject"; });
  EXPECT_EQ(a.accept, (std::vector<uint8_t>{0, 1, 0, 1, 0}));
}

// Newcombe 1998, table I: 81 of 263 and 15 of 148.
TEST(Agreement, IsWilsonsInterval) {
  auto row = agreement(1, 263, 81);
  EXPECT_NEAR(row.low, .2553, 5e-5);
  EXPECT_NEAR(row.high, .3662, 5e-5);
  row = agreement(1, 148, 15);
  EXPECT_NEAR(row.low, .0624, 5e-5);
  EXPECT_NEAR(row.high, .1605, 5e-5);
  EXPECT_EQ(agreement(1, 20, 20).high, 1);
  EXPECT_EQ(agreement(1, 20, 0).low, 0);
}

}  // namespace
}  // namespace lrnn::automata
