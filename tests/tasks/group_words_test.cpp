#include "tasks/group_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "tasks/task.h"

namespace lrnn::tasks {
namespace {

using Ids = std::vector<int64_t>;

TaskPtr words(const std::string& group, const std::string& rest = "") {
  return make(Section::from_text("{name: group, group: " + group + rest + "}", "x.yaml"));
}

std::string error_of_name(const std::string& group) {
  try {
    words(group);
    return "no error";
  } catch (const Error& e) {
    return e.what();
  }
}

// The permutations of n points as the standard library lists them.
std::vector<std::vector<int>> permutations(int n) {
  std::vector<std::vector<int>> all;
  std::vector<int> p(static_cast<size_t>(n));
  std::iota(p.begin(), p.end(), 0);
  do all.push_back(p);
  while (std::next_permutation(p.begin(), p.end()));
  return all;
}

// x_1(x_2(…(point))) for the elements given, as an id of `all`.
int64_t product(const std::vector<std::vector<int>>& all, const Ids& elements) {
  auto out = all[0];
  for (size_t point = 0; point < out.size(); ++point) {
    auto image = int(point);
    for (size_t i = elements.size(); i-- > 0;) image = all[size_t(elements[i])][size_t(image)];
    out[point] = image;
  }
  return std::find(all.begin(), all.end(), out) - all.begin();
}

TEST(GroupWords, RestrictionsAllowThePublishedIds) {
  EXPECT_EQ(GroupWords("S5_only_swaps").letters, (Ids{0, 1, 2, 5, 6, 14, 21, 24, 54, 80, 105}));
  EXPECT_EQ(GroupWords("S5_limit_to_2").letters, GroupWords("S5_only_swaps").letters);
  for (const auto& [name, count] : {std::pair{"S5_limit_to_3", 31},
                                    {"S5_limit_to_4", 76},
                                    {"S4_limit_to_2", 7},
                                    {"S4_limit_to_3", 15},
                                    {"S5", 120}})
    EXPECT_EQ(GroupWords(name).letters.size(), size_t(count)) << name;
}

TEST(GroupWords, RestrictedWordsDrawAllowedElementsAndReachTheWholeGroup) {
  const auto t = words("S5_only_swaps");
  EXPECT_EQ(t->vocabulary(), 127);
  const auto all = permutations(5);
  const auto letters = GroupWords("S5_only_swaps").letters;
  std::map<int64_t, int64_t> drawn;
  std::set<int64_t> reached;
  for (uint64_t i = 0; i < 60; ++i) {
    const auto e = t->sample(2, Split::kTrain, i);
    for (size_t p = 1; p < e.input.size(); ++p) ++drawn[e.input[p]], reached.insert(e.target[p]);
    const Ids head(e.input.begin() + 1, e.input.begin() + 20);
    EXPECT_EQ(e.target[19], product(all, head));
  }
  EXPECT_EQ(reached.size(), 120u);
  Ids seen;
  for (const auto& [id, count] : drawn) {
    seen.push_back(id);
    EXPECT_NEAR(double(count), 60 * 128 / 11.0, 5 * std::sqrt(60 * 128 / 11.0));
  }
  EXPECT_EQ(seen, letters);
}

// The paper's "4 tokens per transition": 120 is the special token, the first three targets are 0,
// and then each product stands for four tokens.
TEST(GroupWords, SeveralTokensPerElement) {
  const auto all = permutations(5);
  const auto t = words("S5_4_tokens_s_token_only_input", ", train: {length: [1, 64]}");
  EXPECT_EQ(t->vocabulary(), 128);
  EXPECT_EQ(t->word(120), "_");
  for (uint64_t i = 0; i < 100; ++i) {
    const auto e = t->sample(1, Split::kTrain, i);
    ASSERT_EQ(e.input[0], 122);
    ASSERT_EQ(e.target[0], 122);
    Ids elements;
    for (size_t p = 1; p < e.input.size(); ++p) {
      if ((p - 1) % 4 == 0) {
        ASSERT_LT(e.input[p], 120);
        elements.push_back(e.input[p]);
      } else {
        ASSERT_EQ(e.input[p], 120);
      }
      // At position p (from 0 without BOS: p-1) the product of the elements up to (p-1-3)/4.
      const Ids done(elements.begin(), elements.begin() + (p >= 4 ? long(p - 4) / 4 + 1 : 0));
      ASSERT_EQ(e.target[p], product(all, done)) << p;
    }
  }
}

TEST(GroupWords, TheOtherFillers) {
  const GroupWords repeat("Z60_2_tokens"), special("Z60_2_tokens_s_token"),
      input("Z60_2_tokens_s_token_only_input");
  const Ids drawn = {7, 50, 10};
  EXPECT_EQ(repeat.spell(drawn, 5), (Ids{7, 7, 50, 50, 10}));
  EXPECT_EQ(repeat.answers({7, 7, 50, 50, 10}), (Ids{0, 7, 7, 57, 57}));
  EXPECT_EQ(special.spell(drawn, 6), (Ids{7, 60, 50, 60, 10, 60}));
  EXPECT_EQ(special.answers({7, 60, 50, 60, 10, 60}), (Ids{0, 7, 60, 57, 60, 7}));
  EXPECT_EQ(input.spell(drawn, 6), (Ids{7, 60, 50, 60, 10, 60}));
  EXPECT_EQ(input.answers({7, 60, 50, 60, 10, 60}), (Ids{0, 7, 7, 57, 57, 7}));
  EXPECT_EQ(repeat.draws(5), 3);
  EXPECT_EQ(repeat.draws(6), 3);
}

TEST(GroupWords, HardCollapsesFourSwaps) {
  const auto all = permutations(5);
  const GroupWords hard("S5_only_swaps_hard");
  const Ids places = {1, 10, 3, 4, 5, 6};
  Ids swaps;
  for (const int64_t i : places) swaps.push_back(hard.letters[size_t(i)]);
  const Ids first(swaps.begin(), swaps.begin() + 4), second(swaps.begin() + 4, swaps.end());
  const int64_t a = product(all, first), b = product(all, second), ab = product(all, {a, b});
  EXPECT_EQ(hard.spell(places, 6), (Ids{a, 0, 0, 0, b, 0}));
  EXPECT_EQ(hard.answers({a, 0, 0, 0, b, 0}), (Ids{0, 0, 0, a, a, a}));
  EXPECT_EQ(hard.answers({a, 0, 0, 0, b, 0, 0, 0, 0}), (Ids{0, 0, 0, a, a, a, a, ab, ab}));
}

TEST(GroupWords, GoldenSequences) {
  EXPECT_EQ(GroupWords("S3").answers({1, 2, 3, 4, 5, 1}), (Ids{1, 4, 0, 4, 2, 3}));
  EXPECT_EQ(GroupWords("S5").answers({1, 5, 24, 119, 37, 60, 8}), (Ids{1, 3, 27, 70, 98, 58, 66}));
  EXPECT_EQ(GroupWords("A5").answers({1, 2, 17, 59, 30}), (Ids{1, 0, 17, 38, 56}));
}

TEST(GroupWords, AFixedSetHoldsDistinctSequences) {
  const auto t = words("Z60_2_tokens_s_token_only_input", ", train: {length: 4, set: 3600}");
  std::set<Ids> seen;
  for (uint64_t i = 0; i < 3600; ++i) seen.insert(t->sample(1, Split::kTrain, i).input);
  EXPECT_EQ(seen.size(), 3600u);
}

TEST(GroupWords, SaysWhatIsWrongWithAName) {
  const std::string at = "x.yaml:1: group cannot be used: ";
  EXPECT_EQ(error_of_name("A5_only_swaps"),
            at + "only permutations move points, and A5 is not some S_n");
  EXPECT_EQ(error_of_name("S5_limit_to_5"),
            at + "the elements of S5 can be limited to 2 .. 4 moved points, not 5");
  EXPECT_EQ(error_of_name("S5_only_swops"), at + "'S5_only_swops' is not the name of a group");
  EXPECT_EQ(error_of_name("S5_0_tokens"), at + "an element can take 1 .. 1000 tokens, not 0");
  EXPECT_EQ(error_of_name("S5_4_tokens_only_input"),
            at + "'only_input' is about the special token; add '_s_token'");
}

}  // namespace
}  // namespace lrnn::tasks
