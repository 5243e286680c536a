#pragma once
#include <functional>
#include <optional>
#include <string>

#include "automata/automaton.h"
#include "automata/learn/oracle.h"

namespace lrnn::automata {

// An automaton that answers: each state with a number.
struct Moore {
  Automaton automaton;
  std::vector<int64_t> answer;

  int64_t answer_to(const Word& word) const { return answer[at(automaton.read(word))]; }
};

// The smallest one with the same answers to all words, numbered like `reachable`; so two of them
// answer alike exactly when these have equal tables.
Moore minimal(const Moore& m);

// The shortest word that they answer differently, of those the first by symbols; nothing when there
// is none. Their symbols are the same ones.
std::optional<Word> first_difference(const Moore& a, const Moore& b);

// With states named by what they answer, and a number behind it where several answer alike: "odd",
// "odd#2". Where answers are accept and reject alone, accepting states are marked.
Automaton named(const Moore& m, const std::function<std::string(int64_t answer)>& name);

}  // namespace lrnn::automata
