#pragma once
#include <optional>
#include <string>
#include <vector>

#include "automata/algebra/group.h"
#include "automata/automaton.h"

namespace lrnn::automata {

// What a user names: exactly one of regex (with alphabet), file, group (maybe with letters) and
// example. The empty expression is one, too.
struct Source {
  bool has_regex = false;
  std::string regex, alphabet, file, group, letters, example;
};

// The automaton that classes, plans and models are about: minimal for a regular expression, the
// reachable part for everything else.
struct Subject {
  std::string title;  // "the language of (ab)*", "the group S5"
  Automaton automaton;
  bool recogniser = false;          // answers accept or reject; otherwise the name of the state
  std::optional<Group> group = {};  // whose elements the symbols and states are, by their names
};

// A file with accepting states is a recogniser. Groups: letters is "all", "swaps" (with the
// identity), "generators" or elements such as "(12),(123)" or "1,5,24". A list of permutations such
// as "(123456),(12)" is the group they generate, and they are its letters unless others are named.
Subject load(const Source& source);

// A named automaton of the suite: every plan is tested on all of them.
struct Example {
  std::string name, about;
  bool recogniser;  // a language, not states to track
  Automaton (*make)();
};

const std::vector<Example>& examples();
const Example& find_example(const std::string& name);  // throws with the nearest name

}  // namespace lrnn::automata
