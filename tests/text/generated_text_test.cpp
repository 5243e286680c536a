#include "text/generated_text.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lrnn::text {
namespace {

// Ids are bytes; 256 is a control.
class Bytes final : public Tokenizer {
 public:
  std::unique_ptr<Encoder> encoder(Reading) const override { throw Error("not here"); }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string out;
    for (const int32_t id : ids)
      if (id < 256) out += char(id);
    return out;
  }
  int32_t vocabulary() const override { return 257; }
  std::optional<int32_t> find(std::string_view) const override { return {}; }
};

std::string all(const std::string& bytes, const std::vector<std::string>& stops,
                std::vector<std::string>* pieces = nullptr) {
  const Bytes tokenizer;
  const int32_t before[] = {256};
  GeneratedText reader(tokenizer, before, stops);
  std::string out;
  for (const char c : bytes) {
    const auto now = reader.add(static_cast<unsigned char>(c));
    if (pieces) pieces->push_back(now);
    out += now;
    if (reader.stopped()) break;
  }
  return out + reader.end();
}

TEST(GeneratedText, CharactersComeWhole) {
  std::vector<std::string> pieces;
  EXPECT_EQ(all("a\u20ACb", {}, &pieces), "a\u20ACb");
  EXPECT_EQ(pieces, (std::vector<std::string>{"a", "", "", "\u20AC", "b"}));
}

TEST(GeneratedText, BrokenBytesAreReplaced) {
  EXPECT_EQ(all("a\xE2\x82", {}), "a\uFFFD\uFFFD");
  EXPECT_EQ(all("\xFFz", {}), "\uFFFDz");
  EXPECT_EQ(all("\xE2z", {}), "\uFFFDz");
}

TEST(GeneratedText, StopsAcrossTokensAndPrintsNothingOfThem) {
  std::vector<std::string> pieces;
  EXPECT_EQ(all("one END two", {"END"}, &pieces), "one ");
  EXPECT_EQ(pieces.size(), 7u);
  EXPECT_EQ(all("one ENtwo", {"END"}), "one ENtwo");
  EXPECT_EQ(all("one EN", {"END"}), "one EN");
  EXPECT_EQ(all("abcabd", {"abd", "zz"}), "abc");
}

}  // namespace
}  // namespace lrnn::text
