#include "text/byte_level.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/word_cache.h"

namespace lrnn::text {
namespace {

Ids encode(const Tokenizer& tokenizer, std::string_view text, bool special = false) {
  Ids ids;
  tokenizer.encoder({.special = special})->encode(text, ids);
  return ids;
}

// Letters, then "aa", "ab", "aab".
const char* const kFile = R"({
  "added_tokens": [{"id": 3, "content": "<s>", "special": true}, {"id": 7, "content": "  "}],
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
  "model": {"vocab": {"a": 0, "b": 1, "Ġ": 2, "<s>": 3, "aa": 4, "ab": 5, "aab": 6},
            "merges": [["a", "a"], ["a", "b"], ["aa", "b"]]}})";

TEST(ByteLevel, TheLowestRankFirstTheLeftmostOnTies) {
  const auto t = read_tokenizer_json(kFile, "it");
  EXPECT_EQ(encode(*t, "aaab"), (Ids{4, 5}));
  EXPECT_EQ(encode(*t, "aab"), (Ids{6}));
  EXPECT_EQ(encode(*t, "ab aa"), (Ids{5, 2, 4}));
  EXPECT_EQ(t->vocabulary(), 8);
}

TEST(ByteLevel, AddedTokensAreCutOutSpecialOnesOnlyIfAsked) {
  const auto t = read_tokenizer_json(kFile, "it");
  EXPECT_EQ(encode(*t, "a  b"), (Ids{0, 7, 1}));
  EXPECT_EQ(encode(*t, "a<s>b", true), (Ids{0, 3, 1}));
  EXPECT_THROW(encode(*t, "a<s>b"), Error);  // there is no letter "<"
  EXPECT_EQ(t->decode(Ids{0, 7, 3}), "a  <s>");
}

TEST(ByteLevel, TheConfigNamesBosAndEos) {
  const auto t = read_tokenizer_json(kFile, "it");
  read_tokenizer_config(R"({"bos_token": {"content": "<s>"}, "eos_token": null})", "config", *t);
  EXPECT_EQ(t->bos, 3);
  EXPECT_FALSE(t->eos);
  EXPECT_THROW(read_tokenizer_config(R"({"bos_token": "<q>"})", "config", *t), Error);
}

TEST(ByteLevel, AnIdOutsideIsAnError) {
  const auto t = read_tokenizer_json(kFile, "it");
  EXPECT_THROW(t->decode(Ids{8}), Error);
  EXPECT_THROW(t->decode(Ids{-1}), Error);
}

TEST(ByteLevel, ALongWordTakesNoSquareOfTime) {
  const auto t = read_tokenizer_json(kFile, "it");
  const std::string word(1000000, 'a');
  const auto ids = encode(*t, word);
  EXPECT_EQ(ids.size(), word.size() / 2);
  EXPECT_EQ(t->decode(ids), word);
}

TEST(ByteLevel, EveryByteHasALetterOfItsOwn) {
  for (int b = 0; b < 256; ++b)
    EXPECT_EQ(bytes_of_piece(byte_letters()[size_t(b)]), std::string(1, char(b)));
  EXPECT_EQ(byte_letters()[' '], "Ġ");
  EXPECT_EQ(byte_letters()['\n'], "Ċ");
  EXPECT_EQ(bytes_of_piece("漢"), "漢");
}

TEST(Tiktoken, RanksAreIds) {
  // a, b, " ", aa, ab, aab
  const auto t = read_tiktoken("YQ== 0\nYg== 1\nIA== 2\nYWE= 3\nYWI= 4\nYWFi 5\n", "it");
  EXPECT_EQ(encode(*t, "aaab"), (Ids{3, 4}));
  EXPECT_EQ(encode(*t, "aab b"), (Ids{5, 2, 1}));
  EXPECT_THROW(encode(*t, "c"), Error);
  EXPECT_THROW(read_tiktoken("YQ== 0\nYQ== 1\n", "it"), Error);
  EXPECT_THROW(read_tiktoken("YQ==\n", "it"), Error);
}

// Whatever a file holds, the answer is a tokenizer or an Error.
TEST(TokenizerJson, BrokenFilesAreErrors) {
  const std::string good = kFile;
  uint32_t state = 7;
  const auto draw = [&](uint32_t n) { return (state = state * 1664525 + 1013904223) / 65536 % n; };
  for (int round = 0; round < 4000; ++round) {
    std::string text = good;
    for (uint32_t n = 1 + draw(3); n > 0; --n) {
      const size_t at = draw(uint32_t(text.size()));
      if (draw(2))
        text[at] = "{}[]\",:09ae-"[draw(12)];
      else
        text.erase(at, 1 + draw(9));
    }
    try {
      const auto t = read_tokenizer_json(text, "it");
      encode(*t, "ab aa  <s>b", true);
    } catch (const Error&) {
    }
  }
}

TEST(WordCache, ForgetsButNeverMixesUp) {
  WordCache cache;
  for (int32_t round = 0; round < 3; ++round)
    for (int32_t i = 0; i < 50000; ++i) {
      const std::string word = "w" + std::to_string(i * 7919);
      if (const auto ids = cache.find(word); ids.data())
        ASSERT_EQ(Ids(ids.begin(), ids.end()), (Ids{i, -i}));
      else
        cache.add(word, Ids{i, -i});
    }
  cache.add(std::string(1000, 'x'), Ids{1});
  EXPECT_FALSE(cache.find(std::string(1000, 'x')).data());
}

}  // namespace
}  // namespace lrnn::text
