#include "text/split.h"

#include <gtest/gtest.h>

#include <string>

#include "text/unicode.h"

namespace lrnn::text {
namespace {

using Words = std::vector<std::string>;

Words words(std::string_view text, std::vector<Split> splits) {
  Words out;
  cut(text, splits, [&](std::string_view word) { out.emplace_back(word); });
  return out;
}

TEST(Unicode, AsManyOfEachClassAsTokenizersHas) {
  int letters = 0, numbers = 0, spaces = 0;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    letters += (classes_of(c) & kLetter) != 0;
    numbers += (classes_of(c) & kNumber) != 0;
    spaces += (classes_of(c) & kSpace) != 0;
  }
  EXPECT_EQ(letters, 141028);
  EXPECT_EQ(numbers, 1911);
  EXPECT_EQ(spaces, 25);
}

TEST(Unicode, ABrokenByteIsACharacterOfNoClass) {
  const auto c = character_at("\xE2\x82 a", 0);
  EXPECT_EQ(c.bytes, 1u);
  EXPECT_EQ(c.classes, 0);
  EXPECT_EQ(last_character("a€").point, 0x20ACu);
  EXPECT_EQ(last_character("a\x82").bytes, 1u);
}

TEST(Split, Gpt2) {
  EXPECT_EQ(words("I'll  go, it's 12.5\n\n x", {Split::kGpt2}),
            (Words{"I", "'ll", " ", " go", ",", " it", "'s", " 12", ".", "5", "\n\n", " x"}));
  EXPECT_EQ(words("end  ", {Split::kGpt2}), (Words{"end", "  "}));
  EXPECT_EQ(words("\tx'S", {Split::kGpt2}), (Words{"\t", "x", "'", "S"}));
}

TEST(Split, Cl100kAndQwen) {
  EXPECT_EQ(words("He'S 12345(x)\r\n  y \n\n z", {Split::kCl100k}),
            (Words{"He", "'S", " ", "123", "45", "(x", ")\r\n", " ", " y", " \n\n", " z"}));
  // Unicode folds the long s to an s: tokenizers takes it for a contraction in capitals.
  EXPECT_EQ(words("a'ſx", {Split::kCl100k}), (Words{"a", "'ſ", "x"}));
  EXPECT_EQ(words("a'ſx", {Split::kGpt2}), (Words{"a", "'", "ſx"}));
  EXPECT_EQ(words("a12", {Split::kQwen}), (Words{"a", "1", "2"}));
}

TEST(Split, OneAfterAnother) {
  EXPECT_EQ(words("ab12 c", {Split::kEachDigit, Split::kGpt2}), (Words{"ab", "1", "2", " c"}));
  EXPECT_EQ(words("ab12 c", {Split::kDigits}), (Words{"ab", "12", " c"}));
  EXPECT_EQ(words("ab", {Split::kPrefixSpace, Split::kGpt2}), (Words{" ab"}));
}

// Nothing of a text is lost, whatever its bytes are.
TEST(Split, WordsJoinedAreTheText) {
  uint32_t state = 1;
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) {
      state = state * 1664525 + 1013904223;
      text += state >> 31 ? char(state >> 20) : " \n'1a\xC3\xA9\xE2"[(state >> 20) % 8];
    }
    for (const Split split : {Split::kGpt2, Split::kCl100k, Split::kQwen, Split::kDigits}) {
      std::string joined;
      for (const auto& word : words(text, {split})) {
        ASSERT_FALSE(word.empty());
        joined += word;
      }
      ASSERT_EQ(joined, text);
    }
  }
}

}  // namespace
}  // namespace lrnn::text
