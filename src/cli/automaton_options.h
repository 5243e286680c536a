#pragma once
#include <CLI/CLI.hpp>
#include <memory>

#include "automata/read/source.h"

namespace lrnn::cli {

// --regex R --alphabet ab | --automaton FILE | --group S5 [--letters swaps] | --example NAME.
// The result is filled when the command's action runs.
std::shared_ptr<automata::Source> add_automaton_options(CLI::App& app);

}  // namespace lrnn::cli
