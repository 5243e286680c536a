#include "experiments/by_octave.h"

#include <gtest/gtest.h>

namespace lrnn::experiments {
namespace {

tasks::Example with_targets(const std::vector<int64_t>& target) {
  tasks::Example out;
  out.input.assign(target.size(), 0);
  out.target.assign(target.begin(), target.end());
  return out;
}

TEST(ByOctave, AHandExample) {
  ByOctave all;
  all.add(with_targets({1, 1, 1, 1, 1, 1, -1}), {{1, 2, 4, 3, 6, 3, 9}, std::vector<char>(7)});
  all.add(with_targets({-1, 1, -1, 1}), {{7, 5, 7, 2}, std::vector<char>(4)});
  struct Row {
    int64_t sequence, from, to, targets;
    double loss;
  };
  const std::vector<Row> expected = {
      {0, 1, 1, 1, 1}, {0, 2, 3, 2, 3},
      {0, 4, 7, 3, 4},  // the last position has no target: its 9 does not count
      {1, 2, 3, 1, 5},  // nothing at position 1
      {1, 4, 4, 1, 2},  // a cut octave
  };
  ASSERT_EQ(all.rows().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto& row = all.rows()[i];
    EXPECT_EQ(row.sequence, expected[i].sequence) << i;
    EXPECT_EQ(row.from, expected[i].from) << i;
    EXPECT_EQ(row.to, expected[i].to) << i;
    EXPECT_EQ(row.targets, expected[i].targets) << i;
    EXPECT_DOUBLE_EQ(row.loss, expected[i].loss) << i;
  }
}

}  // namespace
}  // namespace lrnn::experiments
