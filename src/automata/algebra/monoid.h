#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "automata/automaton.h"

namespace lrnn::automata {

// Every map of the states that some word makes, the identity of the empty word included; nothing
// when there are more than `most`.
std::optional<std::vector<std::vector<int>>> transition_monoid(const Automaton& a, int64_t most);

// The least p > 0 with f^(k+p) = f^k for large k.
int64_t period(const std::vector<int>& f);

}  // namespace lrnn::automata
