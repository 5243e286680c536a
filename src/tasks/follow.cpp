#include "tasks/follow.h"

#include <algorithm>
#include <map>

#include "tasks/keys.h"
#include "tasks/shuffle.h"

namespace lrnn::tasks {
namespace {

class Last final : public Task {
 public:
  explicit Last(AskLast q) : q_(std::move(q)) {}
  int64_t vocabulary() const override { return q_.automaton.symbols; }
  double chance() const override { return 1.0 / static_cast<double>(q_.answers); }
  Score score() const override { return Score::kAnswer; }
  std::string word(int64_t token) const override { return q_.automaton.symbol_name(token); }
  std::vector<int64_t> letters() const override { return q_.letters; }
  std::string empty_answer() const override {
    const int64_t answer = q_.answer[static_cast<size_t>(q_.automaton.start)];
    return answer < 0 ? std::string() : word(answer);
  }
  std::optional<Followed> followed() const override {
    const auto& a = q_.automaton;
    auto read = automata::Automaton::from(
        a.states, static_cast<int64_t>(q_.letters.size()),
        [&](int64_t s, int64_t x) { return a.step(s, q_.letters[static_cast<size_t>(x)]); });
    read.start = a.start;
    read.state_names = a.state_names;
    for (const int64_t token : q_.letters) read.symbol_names.push_back(word(token));
    return Followed{"the task's automaton", std::move(read), q_.answer};
  }

  Example sample(uint64_t seed, Split split, uint64_t index, Range length) const override {
    expect_length(length, q_.shortest);
    Random random = stream(seed, split, index);
    Example out;
    out.input = q_.draw(random, length);
    out.target.assign(out.input.size(), -1);
    int64_t state = q_.automaton.start;
    for (size_t t = 0; t < out.input.size(); ++t) {
      state = q_.automaton.step(state, out.input[t]);
      if (split == Split::kTrain && !q_.on_the_way.empty())
        out.target[t] = q_.on_the_way[static_cast<size_t>(state)];
    }
    out.target.back() = q_.answer[static_cast<size_t>(state)];
    out.length = static_cast<int64_t>(out.input.size()) + q_.beyond;
    return out;
  }

 private:
  AskLast q_;
};

class Each final : public Task {
 public:
  explicit Each(AskEach q) : q_(std::move(q)) {}
  int64_t vocabulary() const override { return static_cast<int64_t>(q_.words.size()); }
  // What counts is the whole sequence, which nobody guesses.
  double chance() const override { return 0; }
  Score score() const override { return Score::kPrefix; }
  std::string word(int64_t token) const override { return q_.words[static_cast<size_t>(token)]; }
  std::vector<int64_t> before_word() const override {
    return q_.bos >= 0 ? std::vector<int64_t>{q_.bos} : std::vector<int64_t>{};
  }
  std::vector<int64_t> letters() const override {
    auto out = q_.letters;
    for (int64_t x = 0; q_.letters.empty() && x < q_.symbols; ++x) out.push_back(x);
    return out;
  }
  std::string empty_answer() const override { return word(q_.start); }
  bool asks_after_every_letter() const override { return true; }
  int64_t most_samples(Range length) const override {
    return q_.eval_rows && length == this->length(Split::kEval) ? q_.eval_rows->count()
                                                                : Task::most_samples(length);
  }
  std::optional<Elements> elements() const override {
    if (!q_.group) return {};
    Elements out{*q_.group, {}};
    for (int64_t t = 0; t < vocabulary(); ++t)
      out.of_token.push_back(t < q_.group->order() ? t : -1);
    return out;
  }
  std::optional<Followed> followed() const override {
    if (!q_.step) return {};
    const auto read = letters();
    // The states that words lead to; tokens are their names.
    std::vector<int64_t> states = {q_.start}, next;
    std::map<int64_t, int64_t> number = {{q_.start, 0}};
    for (size_t i = 0; i < states.size(); ++i)
      for (const int64_t token : read) {
        const int64_t to = q_.step(states[i], token);
        const auto [at, fresh] = number.emplace(to, static_cast<int64_t>(states.size()));
        if (fresh) states.push_back(to);
        next.push_back(at->second);
      }
    const auto symbols = static_cast<int64_t>(read.size());
    auto a = automata::Automaton::from(
        static_cast<int64_t>(states.size()), symbols,
        [&](int64_t s, int64_t x) { return next[static_cast<size_t>(s * symbols + x)]; });
    for (const int64_t token : read) a.symbol_names.push_back(word(token));
    for (const int64_t s : states) a.state_names.push_back(word(s));
    return Followed{"the task's automaton", std::move(a), std::move(states)};
  }

  Example sample(uint64_t seed, Split split, uint64_t index, Range length) const override {
    expect_length(length, 1);
    const bool train = split == Split::kTrain;
    const auto& rows = train ? q_.train_rows : q_.eval_rows;
    if (rows && length == this->length(split)) return ask(rows->at(seed, index));
    return ask(train && q_.set > 0 ? member(seed, index, length)
                                   : fresh(seed, split, index, length));
  }

 private:
  std::vector<int64_t> fresh(uint64_t seed, Split split, uint64_t index, Range length) const {
    Random random = stream(seed, split, index);
    const int64_t n = random.between(length.lo, length.hi);
    std::vector<int64_t> symbols(static_cast<size_t>(draws(n)));
    for (auto& x : symbols) x = draw(random);
    return spell(std::move(symbols), n);
  }

  // Member j begins with the digits of a permutation of j, so no two members are equal; what does
  // not fit into 62 bits is drawn.
  std::vector<int64_t> member(uint64_t seed, uint64_t index, Range length) const {
    const auto set = static_cast<uint64_t>(q_.set);
    const int64_t prefixes = largest_set(q_.symbols, draws(length.lo));
    check(q_.set <= prefixes, "there are only ", prefixes, " sequences of length ", length.lo,
          ", fewer than the fixed set of ", q_.set);
    // One stream per epoch and round of the shuffle.
    const uint64_t epoch = index / set * 64;
    const uint64_t j = Shuffle(set, seed, kEpochStream + epoch)(index % set);
    auto prefix = Shuffle(static_cast<uint64_t>(prefixes), seed, kSetStream + 1)(j);
    Random random(seed, kSetStream, j);
    const int64_t n = random.between(length.lo, length.hi);
    std::vector<int64_t> symbols(static_cast<size_t>(draws(n)));
    const auto base = static_cast<uint64_t>(q_.symbols);
    auto left = static_cast<uint64_t>(prefixes);
    for (auto& x : symbols) {
      x = left >= base ? static_cast<int64_t>(prefix % base) : draw(random);
      prefix /= base;
      left /= base;
    }
    return spell(std::move(symbols), n);
  }

  int64_t draw(Random& random) const {
    return static_cast<int64_t>(random.below(static_cast<uint64_t>(q_.symbols)));
  }

  int64_t draws(int64_t length) const { return q_.draws ? q_.draws(length) : length; }
  std::vector<int64_t> spell(std::vector<int64_t> symbols, int64_t length) const {
    return q_.spell ? q_.spell(symbols, length) : symbols;
  }
  std::vector<int64_t> answers(const std::vector<int64_t>& tokens) const {
    if (q_.answers) return q_.answers(tokens);
    std::vector<int64_t> out;
    int64_t state = q_.start;
    for (const int64_t x : tokens) out.push_back(state = q_.step(state, x));
    return out;
  }

  Example ask(std::vector<int64_t> tokens) const {
    Example out;
    out.length = static_cast<int64_t>(tokens.size());
    out.target = answers(tokens);
    out.input = std::move(tokens);
    if (q_.bos >= 0) {
      out.input.insert(out.input.begin(), q_.bos);
      out.target.insert(out.target.begin(), q_.bos);
    }
    return out;
  }

  AskEach q_;
};

}  // namespace

MutableTask follow(AskLast question) { return std::make_shared<Last>(std::move(question)); }
MutableTask follow(AskEach question) { return std::make_shared<Each>(std::move(question)); }

int64_t largest_set(int64_t symbols, int64_t length) {
  constexpr int64_t kLimit = int64_t{1} << 62;
  int64_t out = 1;
  for (int64_t i = 0; i < length && symbols > 1 && out <= kLimit / symbols; ++i) out *= symbols;
  return out;
}

}  // namespace lrnn::tasks
