#pragma once
#include "compile/margin.h"
#include "experiments/run.h"

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

}  // namespace lrnn::experiments
