#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "tests/tasks/from_yaml.h"

namespace lrnn::tasks {
namespace {

std::string error_of_task(const std::string& yaml) {
  return error_of(Section::from_text(yaml, "x.yaml"));
}

// ------------------------------------------------------------------------------ modular addition

TEST(ModularAddition, TargetsAreTheSumsSoFar) {
  for (const int64_t m : {2, 3, 60}) {
    const auto t = task(cat("name: modular_addition\nmodulus: ", m));
    EXPECT_EQ(t->vocabulary(), m + 1);
    for (uint64_t i = 0; i < 500; ++i) {
      const auto e = t->sample(1, Split::kEval, i);
      ASSERT_EQ(e.length, 128);
      ASSERT_EQ(e.input.size(), 129u);
      ASSERT_EQ(e.input[0], m);
      ASSERT_EQ(e.target[0], m);
      for (size_t p = 1; p < e.input.size(); ++p)
        ASSERT_EQ(e.target[p],
                  std::accumulate(e.input.begin() + 1, e.input.begin() + long(p) + 1, 0L) % m);
    }
  }
}

TEST(ModularAddition, BosCanBeLeftOut) {
  const auto t = task("{name: modular_addition, modulus: 2, bos: false, train: {length: 4}}");
  EXPECT_EQ(t->vocabulary(), 2);
  const auto e = t->sample(1, Split::kTrain, 0);
  EXPECT_EQ(e.input.size(), 4u);
  EXPECT_EQ(e.target[0], e.input[0]);
  const auto with = task("{name: modular_addition, modulus: 2, train: {length: 4}}");
  EXPECT_EQ(with->text(with->sample(1, Split::kTrain, 0)).rfind("BOS ", 0), 0u);
}

// ---------------------------------------------------------------------------------------- groups

TEST(GroupTask, HasThePublishedNumbers) {
  for (const auto& [name, vocabulary] :
       {std::pair{"S3", 13}, {"S4", 31}, {"A5", 67}, {"S5", 127}, {"Z60", 67}, {"A4_x_Z5", 67}}) {
    const auto t = task(cat("{name: group, group: ", name, "}"));
    EXPECT_EQ(t->vocabulary(), vocabulary);
    EXPECT_EQ(t->score(), Score::kPrefix);
    EXPECT_EQ(t->train_length, (Range{128, 128}));
    EXPECT_EQ(t->eval_length, (Range{512, 512}));
    const auto e = t->sample(1, Split::kTrain, 0);
    EXPECT_EQ(e.input.size(), 129u);
    EXPECT_EQ(e.length, 128);
    EXPECT_EQ(e.input[0], vocabulary - 7 + 1);
    EXPECT_EQ(e.target[0], vocabulary - 7 + 1);
    EXPECT_EQ(t->word(e.input[0]), "BOS");
    EXPECT_EQ(t->word(vocabulary - 7), "PAD");
    EXPECT_EQ(t->word(vocabulary - 1), "MASK");
  }
}

// The products as functions on points, the permutations as the standard library lists them.
TEST(GroupTask, TargetsAreComposedFunctions) {
  for (const int n : {3, 4, 5, 6}) {
    std::vector<std::vector<int>> all;
    std::vector<int> p(static_cast<size_t>(n));
    std::iota(p.begin(), p.end(), 0);
    do all.push_back(p);
    while (std::next_permutation(p.begin(), p.end()));
    const auto t = task(cat("{name: group, group: S", n, ", eval: {length: [1, 100]}}"));
    for (uint64_t i = 0; i < 300; ++i) {
      const auto e = t->sample(9, Split::kEval, i);
      for (size_t at = 1; at < e.input.size(); at += 7)
        for (size_t point = 0; point < p.size(); ++point) {
          // x_1(x_2(...x_t(point))): the last one acts first.
          auto image = static_cast<int>(point);
          for (size_t s = at; s >= 1; --s)
            image = all[static_cast<size_t>(e.input[s])][static_cast<size_t>(image)];
          ASSERT_EQ(all[static_cast<size_t>(e.target[at])][point], image);
        }
    }
  }
}

TEST(GroupTask, ElementsAndProductsAreUniform) {
  const auto t = task("{name: group, group: S3}");
  std::map<int64_t, int64_t> inputs, targets;
  int64_t count = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    const auto e = t->sample(3, Split::kTrain, i);
    for (size_t p = 1; p < e.input.size(); ++p, ++count)
      ++inputs[e.input[p]], ++targets[e.target[p]];
  }
  const double error = 5 * std::sqrt(5.0 / 36 / double(count));
  for (int64_t a = 0; a < 6; ++a) {
    EXPECT_NEAR(double(inputs[a]) / double(count), 1.0 / 6, error);
    EXPECT_NEAR(double(targets[a]) / double(count), 1.0 / 6, error);
  }
}

TEST(GroupTask, PrintsProductsForPeople) {
  const auto t = task("{name: group, group: S3, train: {length: 3}}");
  Example e{{7, 1, 2, 3}, {7, 1, 4, 0}, 3};
  EXPECT_EQ(t->text(e), "BOS (23) (12) (123) -> BOS (23) (132) e");
}

TEST(GroupTask, RefusesWhatCannotBe) {
  EXPECT_EQ(error_of_task("name: group\ngroup: Q7\n"),
            "x.yaml:2: group cannot be used: 'Q7' is not the name of a group | "
            "groups are S5, A5, Z60, D4, Q8, products such as A4_x_Z5, and what permutations such "
            "as (123456),(12) generate");
  EXPECT_EQ(
      error_of_task("name: group\ngroup: S99\n")
          .rfind("x.yaml:2: group cannot be used: the group 'S99' has more than 10000 elements", 0),
      0u);
  EXPECT_EQ(error_of_task("name: group\ngroup: A2\n"),
            "x.yaml:2: group must have at least two elements, got A2 | ");
  EXPECT_EQ(
      error_of_task("name: group\ntrain: {length: 3, set: 217}\n"),
      "x.yaml:2: train.set must be between 0 and 216 (that many sequences differ), got 217 | ");
  EXPECT_EQ(error_of_task("name: group\ntrain: {set: -1}\n").rfind("x.yaml:2: train.set must be", 0),
            0u);
}

}  // namespace
}  // namespace lrnn::tasks
