#pragma once
#include <string>

#include "compile/compile.h"

namespace lrnn::cli {

// The automaton, its cascade, what every head does to its state, and a word to step through: one
// self-contained HTML page.
std::string explain_page(const compile::Compiled& compiled, const model::Model& model);

}  // namespace lrnn::cli
