#pragma once
#include <cstdint>
#include <string>

#include "automata/read/regex.h"
#include "automata/read/text_format.h"
#include "base/error.h"

// What the fuzzers run, and the deterministic run of the tests too: any bytes either give an
// automaton that holds together or one clear error.
namespace lrnn::automata {

inline void fuzz_regex(const std::string& bytes) {
  try {
    const auto a = from_regex(bytes, alphabet_of("ab01"));
    a.check();
    if (minimal(a).next != a.next) __builtin_trap();
  } catch (const Error&) {
  }
}

inline void fuzz_json(const std::string& bytes) {
  try {
    const auto a = from_json(bytes, "fuzz");
    a.check();
    if (from_json(to_json(a), "fuzz").next != a.next) __builtin_trap();
  } catch (const Error&) {
  }
}

inline void fuzz_graph(const std::string& bytes) {
  try {
    const auto a = from_graph(bytes, "fuzz");
    a.check();
    if (from_graph(to_graph(a), "fuzz").states != a.states) __builtin_trap();
  } catch (const Error&) {
  }
}

}  // namespace lrnn::automata
