#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lrnn::automata {

// The characters of a text, each as its own bytes. `what` names the text when it is not UTF-8.
std::vector<std::string> characters(const std::string& text, const std::string& what);

uint32_t code_point(const std::string& character);

// A character as an error message shows it: control characters as their number.
std::string shown(const std::string& character);

}  // namespace lrnn::automata
