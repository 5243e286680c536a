#pragma once
#include <string>

#include "automata/automaton.h"

namespace lrnn::automata {

// {"alphabet": ["a"], "states": ["even", "odd"], "start": "even", "accept": ["even"],
//  "next": {"even": {"a": "odd"}, "odd": {"a": "even"}}}
// `accept` may be missing. `where` names the text in errors.
Automaton from_json(const std::string& text, const std::string& where);
std::string to_json(const Automaton& a);

// What Graphviz draws: a digraph whose edges carry their symbols as labels, several separated by
// commas; a shape=doublecircle accepts, and the edge of a shape=point shows the start.
Automaton from_graph(const std::string& text, const std::string& where);
std::string to_graph(const Automaton& a);

// Either of them, told apart by the first character that is not space.
Automaton from_file(const std::string& path);

}  // namespace lrnn::automata
