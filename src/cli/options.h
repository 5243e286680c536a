#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "automata/read/source.h"

// Options that several commands have, and numbers in any of them.
namespace lrnn::cli {

enum class Least { kAny, kZero, kAboveZero };
// What is wrong with a text that should be a number, in a sentence that goes on after the option's
// name; `taken`: whether it fits into the option's type.
CLI::Validator number(Least least, std::function<bool(const std::string&)> taken);

template <class T> struct NumberOf { using type = T; };
template <class T> struct NumberOf<std::optional<T>> { using type = T; };
template <class T>
CLI::Option* add_number(CLI::App& app, const std::string& name, T& value, const std::string& about,
                        Least least = Least::kAny) {
  const auto taken = [](const std::string& text) {
    typename NumberOf<T>::type ignored;
    return CLI::detail::lexical_cast(text, ignored);
  };
  return app.add_option(name, value, about)->check(number(least, taken))->type_name("N");
}

// RUN, which must be given: one, or several where `runs` is a list.
template <class Runs>
void add_run(CLI::App& app, Runs& runs,
             const std::string& about = "a run folder, or a checkpoint in one") {
  app.add_option("RUN", runs, about)->required();
}
// --out, a figure, and where it goes when nobody says.
void add_figure(CLI::App& app, std::string& out, const std::string& otherwise);
// CONFIG KEYS: a file, and what replaces some of it.
void add_config(CLI::App& app, std::string& config, std::vector<std::string>& overrides,
                const std::string& about = "a file of configs/, or your own");

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
