#pragma once
#include <string>
#include <vector>

#include "automata/automaton.h"

namespace lrnn::automata {

// A named automaton of the suite: every plan is tested on all of them.
struct Example {
  std::string name, about;
  bool recogniser;  // a language, not states to track
  Automaton (*make)();
};

const std::vector<Example>& examples();
const Example& find_example(const std::string& name);  // throws with the nearest name

}  // namespace lrnn::automata
