#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "tasks/shuffle.h"
#include "tasks/task.h"

namespace lrnn::tasks {
namespace {

using Sequence = std::vector<int64_t>;

TEST(Shuffle, IsAPermutation) {
  for (const uint64_t size : {1, 2, 3, 4, 5, 16, 17, 100, 1000, 4097}) {
    std::set<uint64_t> seen;
    const Shuffle shuffle(size, 1, 2);
    for (uint64_t i = 0; i < size; ++i) {
      EXPECT_LT(shuffle(i), size);
      seen.insert(shuffle(i));
    }
    EXPECT_EQ(seen.size(), size);
  }
}

TEST(Shuffle, WorksUpToTheLargestSize) {
  const uint64_t size = uint64_t{1} << 62;
  const Shuffle shuffle(size, 1, 2);
  std::set<uint64_t> seen;
  double mean = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    ASSERT_LT(shuffle(i), size);
    seen.insert(shuffle(i));
    mean += std::ldexp(double(shuffle(i)), -62) / 2000;
  }
  EXPECT_EQ(seen.size(), 2000u);
  EXPECT_NEAR(mean, 0.5, 5 * 0.2887 / std::sqrt(2000.0));
}

// Over many seeds every place is equally likely for every number, also in the smallest sets.
TEST(Shuffle, IsFair) {
  for (const uint64_t size : {2, 3, 5, 12}) {
    constexpr uint64_t kSeeds = 6000;
    std::map<std::pair<uint64_t, uint64_t>, double> seen;
    for (uint64_t seed = 0; seed < kSeeds; ++seed)
      for (uint64_t i = 0; i < size; ++i) ++seen[{i, Shuffle(size, seed, 7)(i)}];
    const double want = double(kSeeds) / double(size);
    for (uint64_t i = 0; i < size; ++i)
      for (uint64_t j = 0; j < size; ++j) {
        const double got = seen[{i, j}];
        EXPECT_NEAR(got, want, 5 * std::sqrt(want)) << size << ": " << i << " -> " << j;
      }
  }
}

class FixedSet : public testing::TestWithParam<std::pair<const char*, uint64_t>> {
 protected:
  TaskPtr task = make(Section::from_text(GetParam().first));
  const uint64_t set = GetParam().second;
  std::vector<Sequence> epoch(uint64_t seed, uint64_t number) const {
    std::vector<Sequence> out;
    for (uint64_t i = 0; i < set; ++i)
      out.push_back(task->sample(seed, Split::kTrain, number * set + i).input);
    return out;
  }
};

TEST_P(FixedSet, EveryEpochVisitsTheSameDistinctSequencesInANewOrder) {
  const auto first = epoch(5, 0);
  const std::set<Sequence> members(first.begin(), first.end());
  EXPECT_EQ(members.size(), set);
  for (const uint64_t number : {1, 2, 1000}) {
    const auto later = epoch(5, number);
    EXPECT_EQ(std::set<Sequence>(later.begin(), later.end()), members);
    // A random order leaves about one sequence in its place.
    uint64_t same = 0;
    for (uint64_t i = 0; i < set; ++i) same += first[i] == later[i];
    EXPECT_LE(same, 10u);
  }
}

TEST_P(FixedSet, AnotherSeedIsAnotherSet) {
  const auto a = epoch(5, 0), b = epoch(6, 0);
  EXPECT_NE(a, b);
}

TEST_P(FixedSet, EvaluationIsFresh) {
  const auto whole = epoch(5, 0);
  const std::set<Sequence> members(whole.begin(), whole.end());
  std::set<Sequence> eval;
  for (uint64_t i = 0; i < 2 * set; ++i) eval.insert(task->sample(5, Split::kEval, i).input);
  EXPECT_GT(eval.size(), set);
}

INSTANTIATE_TEST_SUITE_P(
    Sets, FixedSet,
    testing::Values(std::pair{"{name: group, group: S3, train: {length: 3, set: 216}}", 216},
                    std::pair{"{name: group, group: S3, train: {length: 4, set: 100}}", 100},
                    std::pair{"{name: group, group: Z2, train: {length: [11, 20], set: 2000}}",
                              2000},
                    std::pair{"{name: group, group: S5, train: {length: 128, set: 3000}}", 3000}));

// The first tokens come from the permutation, the others are drawn; neither shows.
TEST(FixedSetTask, TokensAreUniformAtEveryPosition) {
  constexpr uint64_t kSet = 24000;
  const auto t =
      make(Section::from_text("{name: group, group: S3, train: {length: 40, set: 24000}}"));
  std::vector<std::map<int64_t, double>> counts(41);
  for (uint64_t i = 0; i < kSet; ++i) {
    const auto e = t->sample(1, Split::kTrain, i);
    for (size_t p = 1; p < 41; ++p) ++counts[p][e.input[p]];
  }
  double chi2 = 0;
  for (size_t p = 1; p < 41; ++p)
    for (int64_t a = 0; a < 6; ++a) chi2 += std::pow(counts[p][a] - 4000, 2) / 4000;
  EXPECT_NEAR(chi2, 40 * 5, 5 * std::sqrt(2.0 * 40 * 5));
}

TEST(FixedSetTask, AShorterLengthThanTheSetNeedsIsAnError) {
  const auto t =
      make(Section::from_text("{name: group, group: S3, train: {length: 4, set: 1000}}"));
  try {
    t->sample(1, Split::kTrain, 0, {3, 3});
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "there are only 216 sequences of length 3, fewer than the fixed set of 1000");
  }
  EXPECT_EQ(t->sample(1, Split::kEval, 0, {3, 3}).length, 3);
}

}  // namespace
}  // namespace lrnn::tasks
