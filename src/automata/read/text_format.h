#pragma once
#include <string>

#include "automata/automaton.h"

namespace lrnn::automata {

// {"alphabet": ["a"], "states": ["even", "odd"], "start": "even", "accept": ["even"],
//  "next": {"even": {"a": "odd"}, "odd": {"a": "even"}}}
// Without `accept` states are tracked, and nothing is accepted or rejected. `where` names the text
// in errors. docs/automata.md has both formats for users.
Automaton from_json(const std::string& text, const std::string& where);
std::string to_json(const Automaton& a);

// What Graphviz draws: a digraph whose edges carry their symbols as labels, several separated by
// commas; double circles (shape=doublecircle or peripheries=2) accept, and the edge of a
// shape=point shows the start. Without double circles states are tracked.
Automaton from_graph(const std::string& text, const std::string& where);
std::string to_graph(const Automaton& a);

// Either of them, told apart by the first character that is not space.
Automaton from_file(const std::string& path);

}  // namespace lrnn::automata
