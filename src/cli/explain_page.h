#pragma once
#include <string>

#include "compile/compile.h"

namespace lrnn::cli {

// The automaton, a word to step through with what every head holds, the cascade, and the
// eigenvalues of every head: one self-contained HTML page.
std::string explain_page(const compile::Compiled& compiled, model::Model& model);

}  // namespace lrnn::cli
