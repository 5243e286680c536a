#include "automata/learn/learn.h"

#include <algorithm>

#include "automata/learn/budget.h"
#include "automata/learn/tree.h"
#include "base/random.h"

namespace lrnn::automata {
namespace {

// Letters of all words of a length together, but so many words: to learn from, and to judge by.
struct Size {
  int64_t letters, fewest, most;
  int64_t at(int64_t length) const { return std::clamp(letters / length, fewest, most); }
};
constexpr Size kToLearn{4096, 16, 64}, kToJudge{16384, 32, 256};
constexpr int64_t kAllShort = 1000;  // words that are tried exhaustively, at most
constexpr int64_t kThrough = 8192;   // W-method words of one kind, at most
constexpr int64_t kMostBetween = 6;  // letters between a state's word and a suffix
constexpr double kLearning = 0.75;   // of the budget; the rest is for judging
constexpr uint64_t kThroughStream = 1;

// The numbers of words: what is learnt from and each judgement have their own.
uint64_t number_of(uint64_t sample, int64_t length, int64_t i) {
  return sample << 40 | uint64_t(length) << 8 | uint64_t(i);
}

// A hypothesis may have so many states more than the best one before it is given up.
int64_t patience(int64_t states) { return 2 * states + 30; }

class Learning {
 public:
  Learning(Oracle& oracle, const Draw& draw, const LearnOptions& o)
      : oracle_(oracle, o.words, o.seconds), draw_(draw), o_(o), tree_(oracle_, o.states) {}

  Learnt run() {
    Learnt out;
    try {
      oracle_.allow(kLearning);
      tree_.close();
      read_short_words();
      for (const int64_t n : growing_lengths(o_.longest)) sample(n, kToLearn, 0, known_);
      compared_ = known_.size();
      out.ended = refine_until_agreed(out);
    } catch (const Spent& spent) {
      out.ended = spent.what == Spent::kWords ? Ended::kWords : Ended::kSeconds;
      consider();
    }
    // What is being judged agreed with all that was known.
    const bool judged = out.ended == Ended::kAgreed || judging_;
    out.machine = minimal(judged ? tree_.hypothesis() : best_);
    if (!judged) judge_in_what_is_left(out);
    out.difference = shortest_difference(out.machine);
    out.asked = oracle_.asked(), out.seconds = oracle_.elapsed();
    return out;
  }

 private:
  Ended refine_until_agreed(Learnt& out) {
    for (;;) {
      oracle_.allow(kLearning);
      tree_.close();
      consider();
      if (tree_.full()) return Ended::kStates;
      if (tree_.states() > patience(best_.automaton.states)) return Ended::kNoBetter;
      const auto h = tree_.hypothesis();
      auto parts = shortest_difference(h);
      // Long words are looked into last: a model that is an automaton for a while errs there.
      if (!parts || int64_t(parts->word.size()) > h.automaton.states + kMostBetween) {
        read_words_through(h);
        parts = shortest_difference(h);
      }
      if (!parts && judge(h, out)) return Ended::kAgreed;
      if (!parts) parts = shortest_difference(h);
      if (!tree_.refine(parts->word)) return Ended::kNoBetter;
    }
  }

  // All words up to some length, of all letters: what `draw` gives may never have some.
  void read_short_words() {
    std::vector<Word> words = {{}};
    while (int64_t(words.size()) * oracle_.symbols() <= kAllShort &&
           int64_t(words[0].size()) < o_.longest) {
      std::vector<Word> longer;
      for (const auto& w : words)
        for (int64_t x = 0; x < oracle_.symbols(); ++x) {
          longer.push_back(w);
          longer.back().push_back(x);
        }
      words = std::move(longer);
    }
    if (!words[0].empty()) remember(words, known_);
  }

  void remember(const std::vector<Word>& words, std::vector<Answered>& to) {
    auto answers = oracle_.every(words);
    for (size_t i = 0; i < words.size(); ++i) to.push_back({words[i], std::move(answers[i])});
  }

  // Words of a length as they are drawn; how many there were.
  int64_t sample(int64_t length, const Size& size, uint64_t which, std::vector<Answered>& to) {
    std::vector<Word> words;
    for (int64_t i = 0; i < size.at(length); ++i) {
      auto word = draw_(length, number_of(which, length, i));
      if (word.empty()) break;
      words.push_back(std::move(word));
    }
    if (!words.empty()) remember(words, to);
    return int64_t(words.size());
  }

  // Through every transition and a few letters on, with every suffix that tells states apart
  // behind it (W-method); some of these words where there are too many.
  void read_words_through(const Moore& h) {
    const auto& a = h.automaton;
    const auto& suffixes = tree_.suffixes();
    Random random(o_.seed, kThroughStream, uint64_t(a.states));
    std::vector<Question> questions;
    std::vector<int64_t> from;
    const auto add = [&](int64_t s, Word middle, const Word& suffix) {
      middle.insert(middle.end(), suffix.begin(), suffix.end());
      questions.push_back({tree_.access(s), std::move(middle)});
      from.push_back(s);
    };
    const int64_t all = a.states * a.symbols * int64_t(suffixes.size());
    for (int64_t i = 0; i < std::min(all, kThrough); ++i) {
      const int64_t k = all <= kThrough ? i : random.between(0, all - 1);
      add(k / a.symbols % a.states, {k % a.symbols}, suffixes[at(k / a.symbols / a.states)]);
    }
    for (int64_t i = 0; i < std::min(2 * all, kThrough); ++i) {
      Word middle(at(random.between(2, kMostBetween)));
      for (auto& x : middle) x = random.between(0, a.symbols - 1);
      add(random.between(0, a.states - 1), std::move(middle),
          suffixes[at(random.between(0, int64_t(suffixes.size()) - 1))]);
    }
    const auto answers = oracle_.last(questions);
    for (size_t i = 0; i < questions.size(); ++i) {
      int64_t s = from[i];
      for (const int64_t x : questions[i].after) s = a.step(s, x);
      if (h.answer[at(s)] == answers[i]) continue;
      Answered parts{questions[i].before, {}};
      parts.word.insert(parts.word.end(), questions[i].after.begin(), questions[i].after.end());
      parts.answers.assign(parts.word.size(), Answered::kNotAsked);
      parts.answers.back() = answers[i];
      known_.push_back(std::move(parts));
    }
  }

  // The shortest word up to the letter where the answers part.
  std::optional<Answered> shortest_difference(const Moore& m) const {
    const Answered* found = nullptr;
    size_t least = 0;
    for (const auto& w : known_) {
      const auto n = w.parts_from(m);
      if (n && (!found || *n < least)) found = &w, least = *n;
    }
    if (!found) return {};
    const auto to = int64_t(least);
    return Answered{{found->word.begin(), found->word.begin() + to},
                    {found->answers.begin(), found->answers.begin() + to}};
  }

  // Keeps the hypothesis if more of the answers to the words drawn first are right.
  void consider() {
    const auto h = tree_.hypothesis();
    int64_t right = 0;
    for (size_t i = 0; i < compared_; ++i) {
      int64_t s = h.automaton.start;
      for (size_t t = 0; t < known_[i].word.size(); ++t) {
        s = h.automaton.step(s, known_[i].word[t]);
        right += known_[i].answers[t] == h.answer[at(s)];
      }
    }
    if (right > best_right_) best_ = h, best_right_ = right;
  }

  // Fresh words of every length, up to the first length with a difference.
  bool judge(const Moore& m, Learnt& out) {
    oracle_.allow(1);
    ++judgements_, judging_ = true;
    out.agreement.clear();
    for (const int64_t n : growing_lengths(o_.longest))
      if (!judge(m, n, out)) return judging_ = false;
    return true;
  }

  bool judge(const Moore& m, int64_t length, Learnt& out) {
    std::vector<Answered> fresh;
    const int64_t words = sample(length, kToJudge, judgements_, fresh);
    if (words == 0) return true;
    int64_t equal = 0;
    for (auto& w : fresh) {
      if (!w.parts_from(m))
        ++equal;
      else
        known_.push_back(std::move(w));
    }
    out.agreement.push_back(agreement(length, words, equal));
    out.longest = length;
    return equal == words;
  }

  // Of the best machine: all lengths, as long as the budget lasts.
  void judge_in_what_is_left(Learnt& out) {
    oracle_.allow(1);
    ++judgements_;
    out.agreement.clear(), out.longest = 0;
    try {
      for (const int64_t n : growing_lengths(o_.longest)) judge(out.machine, n, out);
    } catch (const Spent&) {  // the rows so far stand
    }
  }

  Metered oracle_;
  const Draw& draw_;
  const LearnOptions& o_;
  DiscriminationTree tree_;
  std::vector<Answered> known_;
  size_t compared_ = 0;  // of these, the first so many are what hypotheses are compared on
  Moore best_;
  int64_t best_right_ = -1;
  uint64_t judgements_ = 0;
  bool judging_ = false;
};

}  // namespace

Learnt learn(Oracle& oracle, const Draw& draw, const LearnOptions& options) {
  return Learning(oracle, draw, options).run();
}

}  // namespace lrnn::automata
