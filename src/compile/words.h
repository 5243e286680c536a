#pragma once
#include <functional>
#include <string>
#include <vector>

#include "automata/automaton.h"
#include "base/random.h"

// Words to try a model on. Random ones alone prove little: most fall into a state that is never
// left again within a few letters.
namespace lrnn::compile {

struct Word {
  std::string name;
  // The next letter, given how many came before and the state they led to.
  std::function<int64_t(int64_t t, int64_t state)> letter;
};

// Uniform letters, and a walk that stays out of absorbing states while it can.
std::vector<Word> long_words(const automata::Automaton& a, uint64_t seed);
// Single letters, all short periods, a de Bruijn word and single letters with noise; at most
// `most`.
std::vector<Word> structured_words(const automata::Automaton& a, uint64_t seed, size_t most);
// One word through every state and letter, with a few letters behind.
std::vector<std::vector<int64_t>> covering_words(const automata::Automaton& a, uint64_t seed,
                                                 size_t most);

// Words of a given length that end in a state somebody asks about.
class EndingWords {
 public:
  EndingWords(const automata::Automaton& a, std::vector<bool> asked, uint64_t seed);
  // Nothing when no word of that length ends so.
  std::vector<int64_t> next(size_t length);

 private:
  const std::vector<bool>& endings(size_t letters);  // states that reach one in so many
  const automata::Automaton& a_;
  bool all_;
  std::vector<std::vector<bool>> endings_;
  Random random_;
};

}  // namespace lrnn::compile
