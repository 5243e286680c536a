#include "experiments/extract.h"

#include <map>

#include "automata/read/text_format.h"
#include "base/error.h"
#include "experiments/model_oracle.h"

namespace lrnn::experiments {
namespace {

// Words as the task draws them, so that they are not all dead or void of questions.
class Drawn {
 public:
  Drawn(const tasks::Task& task, uint64_t seed)
      : task_(task), seed_(seed), before_(task.before_word().size()) {
    const auto letters = task.letters();
    for (size_t x = 0; x < letters.size(); ++x) symbol_.emplace(letters[x], int64_t(x));
    const auto usual = task.length(tasks::Split::kTrain).hi;
    beyond_ = usual - int64_t(letters_of(usual, 0).size());
  }

  // Nothing where the task has no word of that many letters.
  automata::Word operator()(int64_t length, uint64_t number) const {
    try {
      auto out = letters_of(length + beyond_, number);
      return int64_t(out.size()) == length ? out : automata::Word{};
    } catch (const Error&) {  // it is too short for the task
      return {};
    }
  }

 private:
  automata::Word letters_of(int64_t length, uint64_t number) const {
    const auto example = task_.sample(seed_, tasks::Split::kEval, number, {length, length});
    automata::Word out;
    for (size_t t = before_; t < example.input.size(); ++t)
      out.push_back(symbol_.at(example.input[t]));
    return out;
  }

  const tasks::Task& task_;
  uint64_t seed_;
  size_t before_;
  std::map<int64_t, int64_t> symbol_;
  int64_t beyond_ = 0;  // what the task's lengths count beyond the letters
};

void require_words(const Run& run) {
  const auto name = run.config.task.text("name");
  if (!run.task->followed() && !run.task->asks_after_every_letter())
    throw Error(cat("the task ", name,
                    " asks at places of its own, not after words of letters, so there is no "
                    "automaton to learn"),
                "models of tasks that follow an automaton can be asked, such as parity, group and "
                "automaton");
  const auto letters = run.task->letters().size();
  if (letters > automata::NamedTable::kMostSymbols)
    throw Error(cat("the model reads ", letters, " different letters, and automata have at most ",
                    automata::NamedTable::kMostSymbols),
                "take a smaller modulus or group");
}

}  // namespace

int64_t usual_longest(const tasks::Task& task) { return 10 * task.length(tasks::Split::kTrain).hi; }

std::string answer_name(const tasks::Task& task, int64_t answer) {
  return answer == automata::kUnasked ? "unasked" : task.word(answer);
}

Extracted extract(Run& run, const automata::LearnOptions& options) {
  require_words(run);
  const auto& task = *run.task;
  ModelOracle oracle(*run.model, task);
  Extracted out;
  out.learnt = automata::learn(oracle, Drawn(task, options.seed), options);
  auto& machine = out.learnt.machine;
  for (const int64_t token : task.letters())
    machine.automaton.symbol_names.push_back(task.word(token));
  out.automaton = automata::named(machine, [&](int64_t x) { return answer_name(task, x); });
  if (const auto own = task.followed()) {
    out.own = automata::minimal(automata::Moore{own->automaton, own->answer});
    out.parts = automata::first_difference(*out.own, machine);
  }
  return out;
}

}  // namespace lrnn::experiments
