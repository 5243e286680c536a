#pragma once
#include <cstdint>
#include <vector>

// Who is asked while an automaton is learnt: something that answers every word with a number.
namespace lrnn::automata {

using Word = std::vector<int64_t>;  // symbols

// The answer to words after which nobody asks.
constexpr int64_t kUnasked = -1;

// The word before + after. Questions that share `before` share the work of reading it.
struct Question {
  Word before, after;  // `after` is not empty
};

class Oracle {
 public:
  virtual ~Oracle() = default;
  virtual int64_t symbols() const = 0;
  virtual int64_t empty() const = 0;  // the answer to the empty word
  // One answer to each whole word.
  virtual std::vector<int64_t> last(const std::vector<Question>& questions) = 0;
  // The answers after every letter of each word.
  virtual std::vector<std::vector<int64_t>> every(const std::vector<Word>& words) = 0;
};

}  // namespace lrnn::automata
