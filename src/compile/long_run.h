#pragma once
#include <optional>

#include "automata/automaton.h"
#include "model/model.h"

namespace lrnn::compile {

// How a model reads the letters of an automaton and names its states.
struct Tokens {
  std::vector<int64_t> symbol;  // the token of each symbol
  std::vector<int64_t> answer;  // the token that each state is answered with; -1: not asked
  std::vector<int64_t> before;  // tokens that stand before every word
};

struct LongRun {
  struct Mistake {
    std::string word;              // which kind
    int64_t position = 0;          // letters read, the wrong one included
    std::vector<int64_t> letters;  // all of them while they are few, else the last ones
    int64_t want = 0, got = 0;     // tokens
  };
  int64_t tokens = 0, words = 0, longest = 0, wrong = 0;
  // The earliest in its word: for a trained model, the first length at which it errs.
  std::optional<Mistake> first;
  double margin = 1e300;  // the least distance of the right logit from the next one
  // The least margin in the first and in the last piece of the longest word: what drift takes.
  double first_margin = 0, last_margin = 0;
  // The length at which the margin would be gone if it went on shrinking as it did; infinite where
  // it did not shrink.
  double measured_t_safe() const;
  std::vector<std::pair<std::string, int64_t>> kinds;  // tokens by kind of word
};

struct LongRunOptions {
  int64_t tokens = 1000000;  // of the longest word; about twice as many in all
  uint64_t seed = 1;
  // For models that nothing is proved of: many words of every length first, and no longer ones once
  // a length is wrong.
  bool growing = false;
};
LongRun long_run(model::Model& model, const automata::Automaton& a, const Tokens& tokens,
                 const LongRunOptions& options);

// Words up to a length and no longer: of every kind, and some at random.
LongRun short_run(model::Model& model, const automata::Automaton& a, const Tokens& tokens,
                  int64_t length, uint64_t seed = 1);

}  // namespace lrnn::compile
