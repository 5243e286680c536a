#pragma once
#include <cstdint>
#include <string_view>

// What a pattern such as \p{L} asks of a character, as PyPI `tokenizers` answers it.
namespace lrnn::text {

enum Class : uint8_t {
  kLetter = 1,    // \p{L}
  kNumber = 2,    // \p{N}
  kSpace = 4,     // \s
  kWord = 8,      // \w
  kNumeric = 16,  // the pre-tokenizer Digits: some characters more than \p{N}
};

// A character of a text: where it is not UTF-8, a byte of its own that is in no class.
struct Character {
  uint32_t point = 0;  // 0 for a byte that is no character
  uint32_t bytes = 1;
  uint8_t classes = 0;

  bool is(int any) const { return classes & any; }
};

uint8_t classes_of(uint32_t point);
// The same as a table, for those who ask often: a byte per code point.
const uint8_t* class_table();
// The character at a place before the text's end.
Character character_at(std::string_view text, size_t at);
// The last character of a text that is not empty.
Character last_character(std::string_view text);

}  // namespace lrnn::text
