#include "text/sentence_piece.h"

#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/error.h"

namespace lrnn::text {
namespace {

std::string train(const std::string& kind) {
  const std::string text = read_file(LRNN_SOURCE_DIR "/tests/data/plays/tempest.txt");
  size_t at = 0;
  return train_sentence_piece({.vocabulary = 400, .kind = kind}, [&](std::string& line) {
    if (at >= text.size()) return false;
    const size_t end = std::min(text.find('\n', at), text.size());
    line = text.substr(at, end - at);
    at = end + 1;
    return true;
  });
}

// Any bytes come back, also those that the library alone would change.
TEST(SentencePiece, AnyBytesComeBack) {
  for (const char* kind : {"bpe", "unigram"}) {
    const auto model = train(kind);
    EXPECT_EQ(model, train(kind)) << kind;
    const auto t = read_sentence_piece(model, "it");
    EXPECT_EQ(t->vocabulary(), 400);
    EXPECT_EQ(t->bos, 1);
    EXPECT_EQ(t->eos, 2);
    const auto encoder = t->encoder();
    uint32_t state = 1;
    for (int round = 0; round < 200; ++round) {
      std::string text;
      for (int i = 0; i < 40; ++i) {
        state = state * 1664525 + 1013904223;
        const char* const some[] = {" ", "the", "\u2581", "  ", "\n", "<s>", "é", "\xE2\x96"};
        text += state >> 31 ? std::string(1, char(state >> 20)) : some[(state >> 20) % 8];
      }
      Ids ids;
      encoder->encode(text, ids);
      ASSERT_EQ(t->decode(ids), text) << kind;
    }
  }
}

TEST(SentencePiece, SpecialTokensOnlyIfAsked) {
  const auto t = read_sentence_piece(train("bpe"), "it");
  Ids plain, special;
  t->encoder()->encode("<s>a", plain);
  t->encoder({.special = true})->encode("<s>a", special);
  EXPECT_NE(plain[0], 1);
  EXPECT_EQ(special[0], 1);
  EXPECT_EQ(t->decode(special), "a");
  EXPECT_EQ(t->find("<s>"), 1);
  EXPECT_FALSE(t->find("<nothing of that name>"));
}

TEST(SentencePiece, BrokenModelsAreErrors) {
  const auto model = train("bpe");
  EXPECT_THROW(read_sentence_piece("not a model", "it"), Error);
  EXPECT_THROW(read_sentence_piece(model.substr(0, model.size() / 2), "it"), Error);
  EXPECT_THROW(read_sentence_piece(train("bpe"), "it")->decode(Ids{400}), Error);
}

TEST(SentencePiece, NoTextNoModel) {
  EXPECT_THROW(train_sentence_piece({}, [](std::string&) { return false; }), Error);
}

}  // namespace
}  // namespace lrnn::text
