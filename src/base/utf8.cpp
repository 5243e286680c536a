#include "base/utf8.h"

#include <cstdint>

#include "base/error.h"

namespace lrnn {

size_t bytes_of_character(unsigned char first) {
  return first < 0x80   ? 1
         : first < 0xC2 ? 0
         : first < 0xE0 ? 2
         : first < 0xF0 ? 3
         : first < 0xF5 ? 4
                        : 0;
}

size_t bytes_of_character(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t n = bytes_of_character(first);
  if (n > text.size()) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (n < 3) return n;
  const unsigned char second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool beyond = (first == 0xED && second >= 0xA0) || (first == 0xF4 && second >= 0x90);
  return overlong || beyond ? 0 : n;
}

std::vector<std::string> characters(const std::string& text, const std::string& what) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size(); at += out.back().size()) {
    const size_t n = bytes_of_character(std::string_view(text).substr(at));
    if (n == 0)
      throw Error(cat(what, " is not UTF-8: column ", out.size() + 1, " is no character"),
                  "write it in UTF-8, or use plain letters");
    out.push_back(text.substr(at, n));
  }
  return out;
}

uint32_t code_point(const std::string& character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  uint32_t out = first & (0xFFu >> (character.size() + 1));
  for (size_t i = 1; i < character.size(); ++i)
    out = (out << 6) | (static_cast<unsigned char>(character[i]) & 0x3Fu);
  return out;
}

std::string shown(const std::string& character) {
  const uint32_t c = code_point(character);
  return c < 32 || c == 127 ? cat("character ", c) : cat("'", character, "'");
}

}  // namespace lrnn
