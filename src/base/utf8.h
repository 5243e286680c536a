#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lrnn {

// How many bytes the character has that begins with `first`; 0 when none does.
size_t bytes_of_character(unsigned char first);
// The same of the character at the front of a text; 0 when it is not UTF-8. Overlong forms,
// surrogates and numbers beyond Unicode are not.
size_t bytes_of_character(std::string_view text);

// The characters of a text, each as its own bytes. `what` names the text when it is not UTF-8.
std::vector<std::string> characters(const std::string& text, const std::string& what);

uint32_t code_point(const std::string& character);

// A character as an error message shows it: control characters as their number.
std::string shown(const std::string& character);

}  // namespace lrnn
