#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

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

// An automaton on its way in from a text, where states and symbols are names. `where` begins every
// error.
class NamedTable {
 public:
  static constexpr size_t kMostStates = 5000, kMostSymbols = 256, kMostTransitions = 1000000;

  explicit NamedTable(std::string where) : where_(std::move(where)) {}

  void add_state(const std::string& name);  // throws when it is there
  void add_symbol(const std::string& name);
  bool has_state(const std::string& name) const { return states_.count(name) > 0; }
  bool has_symbol(const std::string& name) const { return symbols_.count(name) > 0; }
  void set_start(const std::string& state);
  bool has_start() const { return start_ >= 0; }
  void accept(const std::string& state);
  void accept_none() { accepts_.resize(names_.size(), 0), marks_ = true; }
  void add(const std::string& from, const std::string& symbol, const std::string& to);

  Automaton finish() const;  // throws when a transition or the start is missing
  [[noreturn]] void fail(const std::string& what, const std::string& hint = {}) const;

 private:
  int64_t state(const std::string& name, const std::string& use) const;

  std::string where_;
  std::map<std::string, int64_t> states_, symbols_;
  std::vector<std::string> names_, symbol_names_;
  std::map<std::pair<int64_t, int64_t>, int64_t> next_;
  std::vector<uint8_t> accepts_;
  int64_t start_ = -1;
  bool marks_ = false;
};

}  // namespace lrnn::automata
