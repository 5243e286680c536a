#include "base/nearest.h"

#include <gtest/gtest.h>

namespace lrnn {
namespace {

TEST(Nearest, FindsWhatATypoMeant) {
  const std::vector<std::string> known = {"train", "eval", "tasks", "show"};
  EXPECT_EQ(nearest("trian", known), "train");
  EXPECT_EQ(nearest("task", known), "tasks");
  EXPECT_EQ(nearest("evall", known), "eval");
}

TEST(Nearest, DoesNotGuessWildly) {
  EXPECT_EQ(nearest("reproduce", {"train", "eval"}), "");
  EXPECT_EQ(nearest("lr", {"eps", "clip"}), "");
  EXPECT_EQ(nearest("x", {}), "");
}

}  // namespace
}  // namespace lrnn
