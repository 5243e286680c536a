#include <gtest/gtest.h>

#include "base/text.h"

namespace lrnn {
namespace {

TEST(Nearest, FindsWhatATypoMeant) {
  const std::vector<std::string> known = {"train", "eval", "tasks", "show"};
  EXPECT_EQ(nearest("trian", known), "train");
  EXPECT_EQ(nearest("task", known), "tasks");
  EXPECT_EQ(nearest("evall", known), "eval");
}

TEST(Nearest, HearsPastCaseAndHyphens) {
  const std::vector<std::string> known = {"delta_product", "delta_net", "mamba", "even_pairs"};
  for (const char* word : {"deltanet", "DeltaNet", "delta-net", "Delta Net", "DELTA_NET"})
    EXPECT_EQ(nearest(word, known), "delta_net") << word;
  EXPECT_EQ(nearest("Delta-Prodcut", known), "delta_product");
  EXPECT_EQ(nearest("EvenPairs", known), "even_pairs");
  // Of two that sound alike it is the one that is written alike.
  EXPECT_EQ(nearest("ab", {"A_B", "ab"}), "ab");
  EXPECT_EQ(nearest("AB", {"ab", "A-B"}), "A-B");
}

TEST(Nearest, DoesNotGuessWildly) {
  EXPECT_EQ(nearest("reproduce", {"train", "eval"}), "");
  EXPECT_EQ(nearest("lr", {"eps", "clip"}), "");
  EXPECT_EQ(nearest("x", {}), "");
}

}  // namespace
}  // namespace lrnn
