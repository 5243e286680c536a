#include "text/python_text.h"

#include <algorithm>

namespace lrnn::text {
namespace {

char lower(char c) { return 'A' <= c && c <= 'Z' ? char(c + 32) : c; }
char upper(char c) { return 'a' <= c && c <= 'z' ? char(c - 32) : c; }

}  // namespace

bool is_python_space(const Character& c) {
  // The separators of ASCII, which Unicode does not count among white space.
  return c.is(kSpace) || (c.point >= 0x1C && c.point <= 0x1F);
}

std::string stripped(std::string_view text) {
  while (!text.empty() && is_python_space(last_character(text)))
    text.remove_suffix(last_character(text).bytes);
  while (!text.empty() && is_python_space(character_at(text, 0)))
    text.remove_prefix(character_at(text, 0).bytes);
  return std::string(text);
}

int64_t characters_in(std::string_view text) {
  int64_t n = 0;
  for (size_t at = 0; at < text.size(); ++n) at += character_at(text, at).bytes;
  return n;
}

int64_t words_in(std::string_view text) {
  int64_t n = 1;
  bool space = false;
  for (size_t at = 0; at < text.size();) {
    const auto c = character_at(text, at);
    n += is_python_space(c) && !space;
    space = is_python_space(c), at += c.bytes;
  }
  return n;
}

std::string capitalised(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), lower);
  if (!text.empty()) text[0] = upper(text[0]);
  return text;
}

bool contains_in_any_case(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return lower(a) == lower(b); }) != text.end() ||
         part.empty();
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

}  // namespace lrnn::text
