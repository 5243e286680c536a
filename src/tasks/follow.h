#pragma once
#include <functional>
#include <string>
#include <vector>

#include "automata/automaton.h"
#include "base/random.h"
#include "tasks/task.h"

// Most tasks are an automaton and a question. The symbols are drawn at random, the automaton reads
// them, and the question is which state it is in: after the last symbol, or after each of them.
namespace lrnn::tasks {

using MutableTask = std::shared_ptr<Task>;

// "Where did it end?" The length of an example counts the answer, which is not stored: a word of
// n-1 tokens has length n, and its target stands on the last of them.
struct AskLast {
  automata::Automaton automaton;  // reads token ids; its symbol names are the words
  std::vector<int64_t> answer;    // token id for each state; -1 where a word never ends
  std::vector<int64_t> letters;   // the tokens that words are made of
  int64_t answers = 2;            // how many different ones: chance is 1 in so many
  int64_t shortest = 2;
  int64_t beyond = 1;                    // what a length counts beyond the tokens: the answer
  std::vector<int64_t> on_the_way = {};  // answers that training asks for before the last, likewise
  std::function<std::vector<int64_t>(Random&, Range)> draw;  // a word for a range of lengths
};
MutableTask follow(AskLast question);

// Sequences that come from a file: a pure function of (seed, index) too.
class Rows {
 public:
  virtual ~Rows() = default;
  virtual int64_t count() const = 0;
  virtual std::vector<int64_t> at(uint64_t seed, uint64_t index) const = 0;
};

// "Where is it now?" The length of an example counts the symbols, not BOS, which stands before both
// inputs and targets. Symbols are drawn uniformly; a state's token is its number.
struct AskEach {
  int64_t symbols = 0, start = 0;
  std::vector<int64_t> letters;  // tokens that words are made of; empty: the symbols
  std::function<int64_t(int64_t, int64_t)> step;  // state, token -> state
  std::vector<std::string> words;                 // one per token id
  int64_t bos = -1;                               // -1: none
  std::optional<automata::Group> group = {};      // whose elements the first tokens are
  // Training visits this many distinct sequences, in a new order in every epoch; 0: all fresh.
  int64_t set = 0;

  // When tokens are not the symbols drawn. How many symbols make a sequence of that many tokens,
  // the tokens they make, and the answers to given tokens (which then replace `step`).
  std::function<int64_t(int64_t)> draws;
  std::function<std::vector<int64_t>(const std::vector<int64_t>&, int64_t)> spell;
  std::function<std::vector<int64_t>(const std::vector<int64_t>&)> answers;
  // Tokens from elsewhere, for sequences of the config's own lengths.
  std::shared_ptr<const Rows> train_rows, eval_rows;
};
MutableTask follow(AskEach question);

// How many distinct sequences of `length` symbols a fixed set can have, at most 2^62.
int64_t largest_set(int64_t symbols, int64_t length);

}  // namespace lrnn::tasks
