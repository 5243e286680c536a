#pragma once
#include <optional>

#include "automata/automaton.h"
#include "model/model.h"

namespace lrnn::compile {

// How a model reads the letters of an automaton and names its states.
struct Tokens {
  std::vector<int64_t> symbol;  // the token of each symbol
  std::vector<int64_t> answer;  // the token that each state is answered with
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
  std::vector<std::pair<std::string, int64_t>> kinds;  // tokens by kind of word
};

struct LongRunOptions {
  int64_t tokens = 1000000;  // of the longest word; about twice as many in all
  uint64_t seed = 1;
};
LongRun long_run(model::Model& model, const automata::Automaton& a, const Tokens& tokens,
                 const LongRunOptions& options);

}  // namespace lrnn::compile
