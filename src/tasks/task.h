#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "automata/algebra/group.h"
#include "automata/automaton.h"
#include "base/config.h"

namespace lrnn::tasks {

enum class Split { kTrain, kEval };

// One sequence. Nothing after the last position that carries loss is stored: all models are
// causal, so it could not change the loss. (Windows of a text are whole: equal lengths are worth
// more than one position.)
struct Example {
  std::vector<int64_t> input;   // token ids
  std::vector<int64_t> target;  // same size; -1 where there is no loss
  int64_t length = 0;           // as the task counts it: what `length:` in a config means
  // Of a text:
  std::vector<int64_t> starts = {};  // places, rising and above 0, where the state begins anew
  int64_t domain = 0;                // which of Task::domains
  double bytes = 0;                  // of the text that the targets stand for
};

// What counts as right.
enum class Score {
  kAnswer,  // one answer per sequence; scaled accuracy = (accuracy - chance) / (1 - chance)
  kPrefix,  // many answers, mostly one at every position; a prefix counts when all of it is right
  kText,    // the next token of a text: what counts is the loss
};

// What a task reads from disk, for who keeps a record of it.
struct Material {
  std::string sha256;                       // of all of it
  std::vector<std::string> folders = {};    // where it lies
  std::vector<std::string> tokenizer = {};  // files that turn texts into its tokens
  // The token that every document begins with; where there is none, the one it ends with.
  std::optional<int64_t> bos = {}, eos = {};
};

// The automaton behind a task. Its symbols are the task's letters, in their order.
struct Followed {
  std::string title;
  automata::Automaton automaton;
  std::vector<int64_t> answer;  // the token for each state; -1: nobody asks there
};

// Of tasks whose words are about a group: which of its elements each token is, -1 for none.
struct Elements {
  automata::Group group;
  std::vector<int64_t> of_token;
};

// A task is a pure function from (seed, split, index) to an example: no state, no files, no order.
// Example 7 of seed 1 is the same on every machine, whatever was drawn before it.
class Task {
 public:
  virtual ~Task() = default;
  virtual int64_t vocabulary() const = 0;  // token ids are 0 .. vocabulary-1, all with a logit
  virtual double chance() const = 0;       // accuracy of guessing
  virtual Score score() const = 0;

  // `length` replaces the range the config gives for the split.
  virtual Example sample(uint64_t seed, Split split, uint64_t index, Range length) const = 0;
  Example sample(uint64_t seed, Split split, uint64_t index) const {
    return sample(seed, split, index, length(split));
  }

  // The words a person reads: one per token id.
  virtual std::string word(int64_t token) const = 0;
  // For those who feed a model words of their own: the tokens that stand before every word, the
  // tokens that a word is made of, the answer to the empty word, if there is one, and what answers
  // to all the others follow.
  virtual std::vector<int64_t> before_word() const { return {}; }
  virtual std::vector<int64_t> letters() const;
  virtual std::string empty_answer() const { return {}; }
  virtual std::optional<Followed> followed() const { return {}; }
  virtual std::optional<Elements> elements() const { return {}; }
  // Whether there is a question after any word of letters; a task that tells a story asks where the
  // story says.
  virtual bool asks_after_every_letter() const { return false; }
  // One line: the input in words, then "->", then the answer(s).
  virtual std::string text(const Example& example) const;

  // Of tasks whose examples come from files. The domains are what is told apart in an evaluation;
  // of the other tasks there is one without a name.
  virtual std::optional<Material> material() const { return {}; }
  virtual std::vector<std::string> domains() const { return {""}; }
  // How many different examples of that length an evaluation can have.
  virtual int64_t most_samples(Range) const { return std::numeric_limits<int64_t>::max(); }
  // Whether the files are what they were: the first time on this machine, or `again`.
  virtual void verify(bool /*again*/) const {}

  Range length(Split split) const { return split == Split::kTrain ? train_length : eval_length; }
  Range train_length, eval_length;
  int64_t eval_samples = 8192;
};
using TaskPtr = std::shared_ptr<const Task>;

// The keys every task has beside its own: {name, train: {length}, eval: {length, samples}}.
struct Entry {
  const char *name, *about;
  TaskPtr (*make)(const Section&);
  YAML::Node (*resolve)(const Section&);  // every key with its value
  std::vector<Key> (*keys)();             // all of them, with their defaults
};
const std::vector<Entry>& all();
const Entry& find(const Section& at);  // by at's key `name`
TaskPtr make(const Section& at);

}  // namespace lrnn::tasks
