#include "automata/algebra/group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/random.h"

namespace lrnn::automata {
namespace {

using Ids = std::vector<int64_t>;

Ids running(const Group& g, const Ids& x) {
  Ids y;
  int64_t at = g.identity();
  for (const int64_t a : x) y.push_back(at = g.product(at, a));
  return y;
}

std::string error_of(const std::string& name) {
  try {
    Group g(name);
    return "no error";
  } catch (const Error& e) {
    return std::string(e.what()) + " | " + e.hint();
  }
}

TEST(Group, TableOfS3) {
  const Group g("S3");
  const int64_t table[6][6] = {{0, 1, 2, 3, 4, 5}, {1, 0, 4, 5, 2, 3}, {2, 3, 0, 1, 5, 4},
                               {3, 2, 5, 4, 0, 1}, {4, 5, 1, 0, 3, 2}, {5, 4, 3, 2, 1, 0}};
  for (int64_t a = 0; a < 6; ++a)
    for (int64_t b = 0; b < 6; ++b) EXPECT_EQ(g.product(a, b), table[a][b]);
}

TEST(Group, PublishedRunningProducts) {
  EXPECT_EQ(running(Group("S3"), {1, 2, 3, 4, 5, 1}), (Ids{1, 4, 0, 4, 2, 3}));
  EXPECT_EQ(running(Group("S5"), {1, 5, 24, 119, 37, 60, 8}), (Ids{1, 3, 27, 70, 98, 58, 66}));
  EXPECT_EQ(running(Group("A5"), {1, 2, 17, 59, 30}), (Ids{1, 0, 17, 38, 56}));
}

// The same groups as functions on points, listed by the standard library.
TEST(Group, PermutationsComposeAsFunctions) {
  for (const int n : {1, 2, 3, 4, 5, 6, 7}) {
    std::vector<std::vector<int>> all, even;
    std::vector<int> p(static_cast<size_t>(n));
    std::iota(p.begin(), p.end(), 0);
    do {
      all.push_back(p);
      // The sign as the determinant would give it: n minus the number of cycles.
      std::vector<bool> seen(p.size());
      int moves = n;
      for (size_t i = 0; i < p.size(); ++i) {
        if (!seen[i]) --moves;
        for (size_t j = i; !seen[j]; j = static_cast<size_t>(p[j])) seen[j] = true;
      }
      if (moves % 2 == 0) even.push_back(p);
    } while (std::next_permutation(p.begin(), p.end()));

    for (const auto& [letter, list] : {std::pair{"S", all}, std::pair{"A", even}}) {
      const Group g(letter + std::to_string(n));
      ASSERT_EQ(g.order(), static_cast<int64_t>(list.size()));
      Random random(1, 2, static_cast<uint64_t>(n));
      for (int trial = 0; trial < 500; ++trial) {
        const auto a = random.below(list.size()), b = random.below(list.size());
        const auto ab = g.product(static_cast<int64_t>(a), static_cast<int64_t>(b));
        for (size_t i = 0; i < p.size(); ++i)
          ASSERT_EQ(list[static_cast<size_t>(ab)][i], list[a][static_cast<size_t>(list[b][i])])
              << g.name() << ": " << a << " * " << b;
      }
    }
  }
}

TEST(Group, DihedralElementsAreMapsOfThePolygon) {
  for (const int64_t n : {1, 2, 3, 4, 5, 12}) {
    const Group g("D" + std::to_string(n));
    ASSERT_EQ(g.order(), 2 * n);
    // r takes corner x to x + 1, s takes x to -x.
    const auto apply = [&](int64_t a, int64_t x) {
      const int64_t turned = (x + a % n) % n;
      return a >= n ? (n - turned) % n : turned;
    };
    for (int64_t a = 0; a < 2 * n; ++a)
      for (int64_t b = 0; b < 2 * n; ++b) {
        const int64_t ab = g.product(a, b);
        for (int64_t x = 0; x < n; ++x) ASSERT_EQ(apply(ab, x), apply(a, apply(b, x)));
        ASSERT_EQ(ab >= n, (a >= n) != (b >= n));
      }
  }
}

class Laws : public testing::TestWithParam<const char*> {};

TEST_P(Laws, Hold) {
  const Group g(GetParam());
  const auto n = static_cast<uint64_t>(g.order());
  Random random(7, 0, 0);
  const auto any = [&] { return static_cast<int64_t>(random.below(n)); };
  for (int i = 0; i < 2000; ++i) {
    const int64_t a = any(), b = any(), c = any();
    ASSERT_EQ(g.product(g.product(a, b), c), g.product(a, g.product(b, c)));
    ASSERT_EQ(g.product(a, 0), a);
    ASSERT_EQ(g.product(0, a), a);
    ASSERT_EQ(g.product(a, g.inverse(a)), 0);
    ASSERT_EQ(g.product(g.inverse(a), a), 0);
  }
}

TEST_P(Laws, GeneratorsReachEveryElementAndNamesDiffer) {
  const Group g(GetParam());
  std::set<int64_t> seen = {0};
  Ids queue = {0};
  while (!queue.empty()) {
    const int64_t a = queue.back();
    queue.pop_back();
    for (const int64_t s : g.generators())
      if (seen.insert(g.product(a, s)).second) queue.push_back(g.product(a, s));
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), g.order());
  std::set<std::string> names;
  for (int64_t a = 0; a < g.order(); ++a) names.insert(g.element(a));
  EXPECT_EQ(static_cast<int64_t>(names.size()), g.order());
}

INSTANTIATE_TEST_SUITE_P(Groups, Laws,
                         testing::Values("S1", "S2", "S3", "S4", "S5", "S6", "S7", "A1", "A2", "A3",
                                         "A4", "A5", "A6", "A7", "Z1", "Z2", "Z60", "D1", "D2",
                                         "D3", "D8", "Q8", "Q8_x_Z3", "A4_x_Z5", "Z2_x_Z2_x_S3",
                                         "S6_x_Z3", "(123456),(12)", "(12)(34),(13)(24)",
                                         "(1 2 10)"));

TEST(Group, ProductsCountRightFactorFastest) {
  const Group g("A4_x_Z5"), a("A4"), z("Z5");
  for (int64_t x = 0; x < 60; ++x)
    for (int64_t y = 0; y < 60; ++y)
      EXPECT_EQ(g.product(x, y), a.product(x / 5, y / 5) * 5 + z.product(x % 5, y % 5));
  // Three factors: (G1 x G2) x G3 numbers the elements like digits.
  const Group three("Z2_x_Z3_x_Z4");
  EXPECT_EQ(three.product(1 * 12 + 2 * 4 + 3, 1 * 12 + 1 * 4 + 2), 0 * 12 + 0 * 4 + 1);
}

TEST(Group, NamesArePeoplesNotation) {
  const Group s5("S5"), d4("D4"), p("S3_x_Z4");
  EXPECT_EQ(s5.element(0), "e");
  EXPECT_EQ(s5.element(1), "(45)");
  EXPECT_EQ(s5.element(24), "(12)");
  EXPECT_EQ(s5.element(33), "(12345)");
  EXPECT_EQ(s5.element(119), "(15)(24)");
  EXPECT_EQ(Group("A4").element(1), "(234)");
  EXPECT_EQ(d4.element(2), "r^2");
  EXPECT_EQ(d4.element(4), "s");
  EXPECT_EQ(d4.element(5), "sr");
  EXPECT_EQ(p.element(9), "[(12),1]");
}

TEST(Group, QuaternionsMultiplyAsHamiltonCarved) {
  const Group q("Q8");
  const int64_t minus = 1, i = 2, j = 4, k = 6;
  for (const int64_t u : {i, j, k}) EXPECT_EQ(q.product(u, u), minus);
  EXPECT_EQ(q.product(i, j), k);
  EXPECT_EQ(q.product(j, k), i);
  EXPECT_EQ(q.product(k, i), j);
  EXPECT_EQ(q.product(j, i), k + 1);
  EXPECT_EQ(q.product(q.product(i, j), k), minus);
}

TEST(Group, PermutationsGenerateTheirGroup) {
  EXPECT_EQ(Group("(123456),(12)").order(), 720);
  EXPECT_EQ(Group("(123),(345)").order(), 60);
  EXPECT_EQ(Group("(1 2 3 4 5 6 7 8 9 10)").order(), 10);
  // On all points in their order, the elements and their numbers are those of S_n.
  const Group s4("S4"), generated("(12),(1234)");
  for (int64_t a = 0; a < 24; ++a)
    for (int64_t b = 0; b < 24; ++b) ASSERT_EQ(generated.product(a, b), s4.product(a, b));
  EXPECT_EQ(generated.generators(), (Ids{s4.generators()[0], s4.generators()[1]}));
  EXPECT_EQ(error_of("(12"),
            "'(12' is not a list of permutations: '(' is never closed | write "
            "cycles such as (123)(45),(12)");
  EXPECT_EQ(error_of("(121)").substr(0, 50), "'(121)' is not a list of permutations: 1 comes twi");
  EXPECT_EQ(error_of("(12)x").substr(0, 30), "'(12)x' is not a list of permu");
  EXPECT_EQ(error_of("(12345678),(12)"),
            "the group '(12345678),(12)' has more than 10000 elements | the largest ones are S7, "
            "A7, Z10000, D5000 and products within that size");
}

TEST(Group, RefusesWhatIsNotAGroup) {
  const std::string hint =
      " | groups are S5, A5, Z60, D4, Q8, products such as A4_x_Z5, and what permutations such as "
      "(123456),(12) generate";
  for (const std::string name : {"", "S", "S0", "Z0", "s3", "Q7", "S3x", "S-3", "S03", "S3_x_",
                                 "_x_S3", "S3_x_x_Z2", "S3 ", "S3.5", "C5"})
    EXPECT_EQ(error_of(name), "'" + name + "' is not the name of a group" + hint);
  const std::string large =
      " | the largest ones are S7, A7, Z10000, D5000 and products within that size";
  for (const std::string name :
       {"S8", "S99", "A8", "Z10001", "D5001", "S5_x_S5", "Z99999999999999999999"})
    EXPECT_EQ(error_of(name), "the group '" + name + "' has more than 10000 elements" + large);
  std::string endless = "Z1";
  for (int i = 0; i < 100000; ++i) endless += "_x_Z1";
  EXPECT_EQ(error_of(endless).size(), 80 + 3 + error_of("Q7").size() - 2);
}

TEST(RightMultiplication, FollowsTheRunningProduct) {
  const Group g("S4");
  const auto a = right_multiplication(g);
  EXPECT_EQ(a.states, 24);
  EXPECT_EQ(a.symbols, 24);
  EXPECT_EQ(a.start, 0);
  Random random(3, 0, 0);
  Ids word;
  for (int i = 0; i < 300; ++i) word.push_back(random.between(0, 23));
  EXPECT_EQ(a.read(word), running(g, word).back());
  EXPECT_EQ(a.state_name(1), "(34)");
}

TEST(RightMultiplication, ReadsChosenLettersOnly) {
  const Group g("S7");
  const auto letters = g.generators();
  const auto a = right_multiplication(g, letters);
  EXPECT_EQ(a.symbols, 2);
  EXPECT_EQ(a.read({0, 1, 1}), g.product(letters[0], g.product(letters[1], letters[1])));
  EXPECT_THROW(right_multiplication(g), Error);          // 25 million transitions
  EXPECT_THROW(right_multiplication(g, {5040}), Error);  // no such element
}

TEST(Automaton, RefusesAnIncompleteTable) {
  EXPECT_THROW(Automaton::from(2, 2, [](int64_t, int64_t) { return 2; }), Error);
  Automaton a{2, 1, {0}, 0, {}, {}};
  EXPECT_THROW(a.check(), Error);
  a.next = {1, 0};
  EXPECT_NO_THROW(a.check());
  a.start = 2;
  EXPECT_THROW(a.check(), Error);
}

}  // namespace
}  // namespace lrnn::automata
