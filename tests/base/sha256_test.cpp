#include "base/sha256.h"

#include <gtest/gtest.h>

namespace lrnn {
namespace {

TEST(Sha256, TheStandardsExamples) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesAreTheWhole) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += char(i * 7);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 sum;
    sum.add(std::string_view(text).substr(0, cut));
    sum.add(std::string_view(text).substr(cut));
    ASSERT_EQ(sum.text(), sha256(text)) << cut;
  }
}

TEST(Sha256, OfAFile) {
  EXPECT_EQ(sha256_of_file(LRNN_SOURCE_DIR "/tests/data/plays/macbeth.txt").substr(0, 16),
            "54e1d8055ffa2aec");
}

}  // namespace
}  // namespace lrnn
