#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

// A command is one row of the table in commands.cpp and one file.
namespace lrnn::cli {

// Exit codes: 0 done, 1 the answer is no, 2 an error we can explain, 130 interrupted.
enum Exit { kDone = 0, kNo = 1, kError = 2, kInterrupted = 130 };

// Runs the command after its arguments have been read; the result is the exit code.
using Action = std::function<int()>;

struct Command {
  const char *name, *about;
  Action (*declare)(CLI::App& app);  // adds the options and says what to do with them
};
const std::vector<Command>& commands();

Action train(CLI::App& app);
Action eval(CLI::App& app);
Action spectrum(CLI::App& app);
Action curves(CLI::App& app);
Action show(CLI::App& app);
Action export_model(CLI::App& app);
Action import_model(CLI::App& app);
Action demo(CLI::App& app);
Action reproduce(CLI::App& app);
Action compile_automaton(CLI::App& app);
Action run_model(CLI::App& app);
Action verify_model(CLI::App& app);
Action explain_model(CLI::App& app);
Action extract_automaton(CLI::App& app);
Action tokenize(CLI::App& app);
Action prepare(CLI::App& app);
Action generate(CLI::App& app);
Action tasks(CLI::App& app);
Action mixers(CLI::App& app);
Action doctor(CLI::App& app);
Action check_automaton(CLI::App& app);

// The whole program: one sentence for people where something is wrong, an exit code for scripts, a
// line for who watches. `arguments` without the program's own name.
int program(const std::vector<std::string>& arguments);
// The same without the last catch.
int run(const std::vector<std::string>& arguments);

// From here on the first Ctrl-C (or SIGTERM) only raises a flag, so that the work can stop where
// nothing is lost; the second one ends the program as usual.
void watch_interrupts();
bool interrupted();

}  // namespace lrnn::cli
