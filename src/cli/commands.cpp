#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <iostream>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"

// The table of commands: a new one is a row here, a declaration in command.h and a file.
namespace lrnn::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> table = {
      {"demo", "train five small models and show why the eigenvalues matter", demo},
      {"train", "train what a config describes, or go on with it", train},
      {"eval", "accuracy of a run by length, as table, CSV and figure", eval},
      {"spectrum", "the eigenvalues a trained model uses, as text and figure", spectrum},
      {"curves", "loss and accuracy of runs by step, as figure and CSV", curves},
      {"reproduce", "train what a published table is made of, and compare", reproduce},
      {"show", "a config with every key, and the model it makes", show},
      {"export", "a run as a folder that fla and transformers load", export_model},
      {"import", "a model of fla or transformers as a run", import_model},
      {"check", "which linear RNNs can follow an automaton, and by which theorem", check_automaton},
      {"compile", "an automaton as the weights of a model that follows it exactly",
       compile_automaton},
      {"run", "feed words to a model", run_model},
      {"verify", "prove a compiled model right, or find the first word a model gets wrong",
       verify_model},
      {"extract", "the automaton that a model follows, learnt by asking the model",
       extract_automaton},
      {"explain",
       "a page with the automaton, its cascade, the eigenvalues and a word to step through",
       explain_model},
      {"tokenize", "texts as ids and back, by the tokenizers of published models", tokenize},
      {"prepare", "a corpus as shards of ids, for language models", prepare},
      {"generate", "let a language model continue a text", generate},
      {"tasks", "list the tasks, or print samples of one", tasks},
      {"mixers", "list the mixers with their keys", mixers},
      {"doctor", "check this machine and every op on it", doctor},
  };
  return table;
}

namespace {

std::string overview() {
  std::string out =
      "lrnn trains, runs and explains linear RNNs that track state.\n\n"
      "Usage: lrnn COMMAND [arguments]\n\n";
  for (const auto& c : commands()) out += fmt::format("  {:<11}{}\n", c.name, c.about);
  return out +
         "\nEvery command explains itself with --help and answers scripts with --json.\n"
         "Exit codes: 0 done, 1 the answer is no, 2 an error, 130 interrupted.\n\n"
         "Example:\n"
         "  lrnn train configs/chomsky/parity_delta_net_2.yaml train.steps=100 --out runs/x\n"
         "  lrnn eval runs/x --lengths 3:512\n";
}

const Command& find(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& c : commands()) {
    if (c.name == name) return c;
    names.emplace_back(c.name);
  }
  throw Error(cat("there is no command '", name, "'"),
              did_you_mean(name, names, "`lrnn --help` lists the commands"));
}

bool is_help(const std::string& word) { return word == "--help" || word == "-h"; }

// `tasks show …` is a command inside a command; the options that follow are its own.
CLI::App& innermost(CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return app;
  const auto inner = app.get_subcommands([&](CLI::App* a) { return a->get_name() == words[0]; });
  return inner.empty() ? app : *inner[0];
}

// CLI11 stops at the first thing it misses; a misspelt option is the likelier cause, so it is
// looked for first.
void check_options(const CLI::App& app, const std::vector<std::string>& words) {
  for (const auto& word : words) {
    if (word == "--") return;
    if (word.size() < 2 || word[0] != '-' || std::isdigit(static_cast<unsigned char>(word[1])))
      continue;
    const auto name = word.substr(0, word.find('='));
    if (app.get_option_no_throw(name)) continue;
    std::vector<std::string> known;
    for (const auto* option : app.get_options())
      for (const auto& text : option->get_lnames()) known.push_back("--" + text);
    throw Error(cat("there is no option '", name, "' here"),
                did_you_mean(name, known, "--help lists the options"));
  }
}

// `--json=x`
std::string flag_with_value(const CLI::App& app, const std::vector<std::string>& words) {
  for (const auto& word : words) {
    const auto name = word.substr(0, word.find('='));
    const auto* option = app.get_option_no_throw(name);
    if (option && option->get_items_expected_min() == 0 && name != word) return name;
  }
  return "a flag";
}

}  // namespace

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) throw Error("no command was given", "`lrnn --help` lists the commands");
  if (is_help(arguments[0])) return std::cout << overview(), kDone;
  if (arguments[0] == "--version") return std::cout << "lrnn " << LRNN_VERSION << "\n", kDone;

  const auto& command = find(arguments[0]);
  std::vector<std::string> words(arguments.begin() + 1, arguments.end());
  CLI::App app(command.about, cat("lrnn ", command.name));
  const Action action = command.declare(app);
  CLI::App& inner = innermost(app, words);
  if (std::any_of(words.begin(), words.end(), is_help))
    return std::cout << inner.help(&inner == &app ? "" : app.get_name()), kDone;
  check_options(inner, words);
  try {
    app.parse(std::vector(words.rbegin(), words.rend()));  // CLI11 takes them from the back
  } catch (const CLI::ConversionError&) {
    // Numbers are looked at before (cli/options.h), so it was a flag.
    throw Error(cat(flag_with_value(inner, words), " takes no value"), "--help lists the options");
  }
  return action();
}

namespace {

volatile std::sig_atomic_t raised = 0;

extern "C" void raise_flag(int) { raised = 1; }

}  // namespace

void watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = raise_flag;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return raised != 0; }

}  // namespace lrnn::cli
