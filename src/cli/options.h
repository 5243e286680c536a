#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "automata/read/source.h"

// Options that several commands have.
namespace lrnn::cli {

// --regex R --alphabet ab | --automaton FILE | --group S5 [--letters swaps] | --example NAME.
// The result is filled when the command's action runs.
std::shared_ptr<automata::Source> add_automaton_options(CLI::App& app);

// Adds --device to a command; the text is what the user asked for.
std::shared_ptr<std::string> add_device(CLI::App& app);
// Makes the device ready, or explains why it cannot be used.
void require_device(const std::string& device);
// The same, for a command that runs a model itself: while the result lives, its work on a GPU goes
// to a stream of its own, because nothing can be recorded on the default one.
std::shared_ptr<void> use_device(const std::string& device);
// Why CUDA cannot be used here; empty when it can.
std::string why_no_cuda();

}  // namespace lrnn::cli
