#include "cli/automaton_options.h"

namespace lrnn::cli {

std::shared_ptr<automata::Source> add_automaton_options(CLI::App& app) {
  auto s = std::make_shared<automata::Source>();
  // A callback: the empty expression is given, too.
  app.add_option_function<std::string>(
         "--regex", [s](const std::string& regex) { s->regex = regex, s->has_regex = true; },
         "| * + ? {2,5} ( ) . [a-c] [^a] \\ escapes, ! complement, & intersection")
      ->type_name("R");
  app.add_option("--alphabet", s->alphabet, "every symbol of its words, such as ab")
      ->type_name("CHARACTERS");
  app.add_option("--automaton", s->file, "JSON or Graphviz text, see docs/automata.md")
      ->type_name("FILE");
  app.add_option("--group", s->group, "S5, A5, Z60, D4, Q8, A4_x_Z5, or generators (123),(12)")
      ->type_name("NAME");
  app.add_option("--letters", s->letters,
                 "of the group: all, swaps, generators, or elements (12),(123) or 1,5")
      ->type_name("WHICH");
  app.add_option("--example", s->example, "a named automaton, such as parity or dyck1_3")
      ->type_name("NAME");
  return s;
}

}  // namespace lrnn::cli
