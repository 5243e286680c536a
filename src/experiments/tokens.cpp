#include "experiments/tokens.h"

#include <map>
#include <set>

#include "base/error.h"

namespace lrnn::experiments {
namespace {

using automata::Automaton;

std::vector<std::string> labels(const automata::Subject& subject) {
  const auto& a = subject.automaton;
  std::vector<std::string> out;
  for (int64_t s = 0; s < a.states; ++s)
    out.push_back(!subject.recogniser   ? a.state_name(s)
                  : a.accept[size_t(s)] ? "accept"
                                        : "reject");
  return out;
}

// The token that the task answers with wherever `a` says a label, by reading all words at once.
std::map<std::string, int64_t> by_words(const tasks::Followed& own, const Automaton& a,
                                        const std::vector<std::string>& label,
                                        const std::vector<int64_t>& own_symbol) {
  std::map<std::string, int64_t> out;
  std::vector<std::pair<int64_t, int64_t>> queue = {{a.start, own.automaton.start}};
  std::set<std::pair<int64_t, int64_t>> seen(queue.begin(), queue.end());
  for (size_t i = 0; i < queue.size(); ++i) {
    const auto [s, o] = queue[i];
    const int64_t token = own.answer[size_t(o)];
    const auto [at, fresh] = out.emplace(label[size_t(s)], token);
    if (at->second < 0) at->second = token;
    if (token >= 0 && at->second != token)
      throw Error(cat("the model cannot say '", label[size_t(s)],
                      "', and its task has several answers where the automaton says it"),
                  "name the automaton's states after the model's answers");
    for (int64_t x = 0; x < a.symbols; ++x) {
      const std::pair<int64_t, int64_t> to = {a.step(s, x),
                                              own.automaton.step(o, own_symbol[size_t(x)])};
      if (seen.insert(to).second) queue.push_back(to);
    }
  }
  return out;
}

}  // namespace

compile::Tokens tokens_of(const tasks::Task& task, const tasks::Followed& own) {
  return {task.letters(), own.answer, task.before_word()};
}

compile::Tokens tokens_of(const tasks::Task& task, const automata::Subject& subject) {
  const auto& a = subject.automaton;
  const auto letters = task.letters();
  std::map<std::string, int64_t> letter, said;
  for (size_t i = 0; i < letters.size(); ++i) letter.emplace(task.word(letters[i]), int64_t(i));
  // One word can be a letter and a state: then the letter comes first.
  for (int64_t t = 0; t < task.vocabulary(); ++t) said[task.word(t)] = t;
  compile::Tokens out;
  out.before = task.before_word();
  std::vector<int64_t> own_symbol;
  for (int64_t x = 0; x < a.symbols; ++x) {
    const auto at = letter.find(a.symbol_name(x));
    if (at == letter.end()) {
      std::string known;
      for (const int64_t t : letters)
        if (known.size() < 60) known += " " + task.word(t);
      throw Error(cat("the model does not read the automaton's symbol '", a.symbol_name(x), "'"),
                  "it reads:" + known);
    }
    own_symbol.push_back(at->second);
    out.symbol.push_back(letters[size_t(at->second)]);
  }
  const auto label = labels(subject);
  bool all_said = true;
  for (const auto& name : label) all_said &= said.contains(name);
  if (!all_said) {
    const auto own = task.followed();
    if (!own)
      throw Error("the model cannot say what the automaton answers, such as '" + label[0] + "'",
                  "name the automaton's states after the model's answers");
    said = by_words(*own, a, label, own_symbol);
  }
  for (const auto& name : label) out.answer.push_back(said.at(name));
  return out;
}

}  // namespace lrnn::experiments
