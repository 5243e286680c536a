#pragma once
#include "compile/compile.h"
#include "experiments/run.h"

namespace lrnn::experiments {

// A compiled model as a run folder at step 0: run, eval, spectrum and train open it like any other.
// compiled.json beside it says what it was compiled from.
void write_compiled(const std::string& folder, const compile::Compiled& compiled,
                    const automata::Source& source);

bool is_compiled(const std::string& folder);
// Compiles again what the folder says: the construction its weights should be.
std::unique_ptr<compile::Compiled> recompile(const Run& run);

}  // namespace lrnn::experiments
