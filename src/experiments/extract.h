#pragma once
#include "automata/learn/learn.h"
#include "experiments/run.h"

namespace lrnn::experiments {

// The automaton that a model follows, learnt by asking it.
struct Extracted {
  automata::Learnt learnt;
  // The same with the names of the task's letters and answers.
  automata::Automaton automaton;
  // Where the task has an automaton of its own: that, minimal, and the shortest word on which the
  // learnt one parts from it, if there is one.
  std::optional<automata::Moore> own;
  std::optional<automata::Word> parts;

  bool agreed() const { return learnt.ended == automata::Ended::kAgreed; }
};

// Letters of the longest words that are tried: ten times what it was trained on.
int64_t usual_longest(const tasks::Task& task);

Extracted extract(Run& run, const automata::LearnOptions& options);

// What a learnt machine's answer is called.
std::string answer_name(const tasks::Task& task, int64_t answer);

}  // namespace lrnn::experiments
