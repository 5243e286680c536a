#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "experiments/compiled.h"
#include "experiments/extract.h"
#include "tasks/letters.h"

// Which token of a task says which state of an automaton.
namespace lrnn::experiments {
namespace {

using automata::Automaton;

std::vector<std::string> labels(const Automaton& a, bool recogniser) {
  std::vector<std::string> out;
  for (int64_t s = 0; s < a.states; ++s)
    out.push_back(!recogniser ? a.state_name(s) : a.accept[size_t(s)] ? "accept" : "reject");
  return out;
}

bool all_in(const std::vector<std::string>& names, const std::map<std::string, int64_t>& said) {
  return std::all_of(names.begin(), names.end(), [&](auto& name) { return said.contains(name); });
}

// States that `lrnn extract` told apart by a number have one answer: "odd#2" is said as "odd".
std::vector<std::string> without_numbers(std::vector<std::string> names) {
  for (auto& name : names) {
    const size_t mark = name.rfind('#');
    if (mark != std::string::npos && mark + 1 < name.size() &&
        name.find_first_not_of("0123456789", mark + 1) == std::string::npos)
      name.resize(mark);
  }
  return names;
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
  const tasks::Letters letters(task);
  const auto tokens = task.letters();
  std::map<int64_t, int64_t> place;
  for (size_t i = 0; i < tokens.size(); ++i) place.emplace(tokens[i], int64_t(i));
  std::map<std::string, int64_t> said;
  // One word can be a letter and a state: then the letter comes first.
  for (int64_t t = 0; t < task.vocabulary(); ++t) said[task.word(t)] = t;
  compile::Tokens out;
  out.before = task.before_word();
  std::vector<int64_t> own_symbol;
  for (int64_t x = 0; x < a.symbols; ++x) {
    const int64_t token = letters.find(a.symbol_name(x));
    if (token < 0)
      throw Error(cat("the model does not read the automaton's symbol '", a.symbol_name(x), "'"),
                  "it reads: " + letters.some());
    own_symbol.push_back(place.at(token));
    out.symbol.push_back(token);
  }
  auto label = labels(a, subject.recogniser);
  // A model that tracks states can be compared with a recogniser, state by state.
  if (subject.recogniser && !all_in(label, said) && all_in(labels(a, false), said))
    label = labels(a, false);
  if (!all_in(label, said)) {
    // After words with this answer nobody asks.
    auto plain = said;
    plain.emplace(kNobodyAsks, -1);
    if (auto shorter = without_numbers(label); all_in(shorter, plain))
      label = std::move(shorter), said = std::move(plain);
  }
  if (!all_in(label, said)) {
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
