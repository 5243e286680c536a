#include <gtest/gtest.h>

#include "base/text.h"

namespace lrnn {
namespace {

TEST(Utf8, TheFirstByteSaysHowLong) {
  for (int first = 0; first < 256; ++first) {
    const size_t want = first < 0x80                    ? 1
                        : first >= 0xC2 && first < 0xE0 ? 2
                        : first >= 0xE0 && first < 0xF0 ? 3
                        : first >= 0xF0 && first < 0xF5 ? 4
                                                        : 0;
    EXPECT_EQ(bytes_of_character(static_cast<unsigned char>(first)), want) << first;
  }
}

TEST(Utf8, OnlyWhatUnicodeHas) {
  const auto bytes = [](const std::string& text) { return bytes_of_character(text); };
  EXPECT_EQ(bytes("ab"), 1u);
  EXPECT_EQ(bytes("β"), 2u);
  EXPECT_EQ(bytes("≥2"), 3u);
  EXPECT_EQ(bytes("\xf4\x8f\xbf\xbf"), 4u);  // the last there is
  EXPECT_EQ(bytes(""), 0u);
  EXPECT_EQ(bytes("\xe2\x89"), 0u);  // cut off
  EXPECT_EQ(bytes("\xce"
                  "a"),
            0u);                         // not continued
  EXPECT_EQ(bytes("\xe0\x80\xaf"), 0u);  // overlong
  EXPECT_EQ(bytes("\xf0\x80\x80\xaf"), 0u);
  EXPECT_EQ(bytes("\xed\xa0\x80"), 0u);      // half of a surrogate pair
  EXPECT_EQ(bytes("\xf4\x90\x80\x80"), 0u);  // beyond Unicode
}

TEST(Utf8, CharactersOfAText) {
  EXPECT_EQ(characters("aβ≥", "it"), (std::vector<std::string>{"a", "β", "≥"}));
  EXPECT_EQ(code_point("≥"), 0x2265u);
  EXPECT_EQ(shown("\n"), "character 10");
}

}  // namespace
}  // namespace lrnn
