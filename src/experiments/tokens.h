#pragma once
#include "automata/read/source.h"
#include "compile/long_run.h"
#include "tasks/task.h"

// How the model of a task reads an automaton's letters and names its states.
namespace lrnn::experiments {

// The task's own automaton; an error when it has none.
compile::Tokens tokens_of(const tasks::Task& task, const tasks::Followed& own);

// Another automaton. Letters go by their names. So do states and "accept" and "reject", where the
// model can say them; where it cannot, by what the task answers to the same words.
compile::Tokens tokens_of(const tasks::Task& task, const automata::Subject& subject);

}  // namespace lrnn::experiments
