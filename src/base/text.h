#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Texts that people write: characters in UTF-8, whole files, and what a typo meant.
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

// What a caller knows about a file that somebody named.
struct TextFile {
  std::string hint;               // what such a file is, and where it may come from
  int64_t most_bytes = 16 << 20;  // larger ones are mistakes
};

// The whole of a text file (or of a pipe), or an Error that says why it cannot be one: there is
// none, it is a folder, it may not be read, it is empty, it is too large, it is not text.
std::string read_text_file(const std::string& path, const TextFile& about);

// The one of `known` that a typo most likely meant: at most two single-letter edits away (one for
// words of up to three letters), where case, '-', '_' and spaces do not count; empty when there is
// none.
std::string nearest(const std::string& word, const std::vector<std::string>& known);
// The hint with it: "did you mean 'eval'?", or what to say when there is none.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known,
                         const std::string& otherwise = {});

}  // namespace lrnn
