#pragma once
#include "automata/read/source.h"
#include "compile/long_run.h"
#include "compile/margin.h"
#include "experiments/run.h"
#include "tasks/task.h"

namespace lrnn::experiments {

// A compiled model as a run folder at step 0: run, eval, spectrum and train open it like any other.
// compiled.json beside it says what it was compiled from, and how far its weights may move.
void write_compiled(const std::string& folder, const compile::Compiled& compiled,
                    const compile::Margin& margin, const automata::Source& source);

bool is_compiled(const std::string& folder);
// Compiles again what the folder says: the construction its weights should be.
std::unique_ptr<compile::Compiled> recompile(const Run& run);
// What the folder says about the margin. Throws if it does not, as folders of earlier versions.
compile::Margin compiled_margin(const std::string& folder);

// How the model of a task reads an automaton's letters and names its states: here the task's own
// automaton; an error when it has none.
compile::Tokens tokens_of(const tasks::Task& task, const tasks::Followed& own);

// Another automaton. Letters go by their names. So do states and "accept" and "reject", where the
// model can say them; where it cannot, by what the task answers to the same words.
compile::Tokens tokens_of(const tasks::Task& task, const automata::Subject& subject);

}  // namespace lrnn::experiments
