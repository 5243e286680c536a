#include "automata/cascade/cascade.h"

#include <gtest/gtest.h>

#include "automata/automaton.h"
#include "automata/cascade/classify.h"
#include "automata/read/source.h"
#include "base/error.h"
#include "base/random.h"

namespace lrnn::automata {
namespace {

Automaton random_automaton(uint64_t seed, int64_t most_states, int64_t most_symbols) {
  Random random(21, 0, seed);
  const int64_t n = random.between(2, most_states), m = random.between(1, most_symbols);
  auto a = Automaton::from(n, m, [&](int64_t, int64_t) { return random.between(0, n - 1); });
  return reachable(a);
}

// "2:1 3:S3"
std::string levels_of(const Class& c) {
  std::string out;
  for (const auto& level : c.levels)
    out += (out.empty() ? "" : " ") + std::to_string(level.tiles) + ":" + level.group;
  return out;
}

struct Row {
  const char* name;
  int64_t states, monoid, images;
  const char* levels;
};

// Published sizes of the suite, from a program that shares no code with ours.
TEST(Cascade, SuiteHasThePublishedDecompositions) {
  const Row table[] = {
      {"tomita1", 2, 2, 3, "2:1"},
      {"tomita2", 3, 6, 6, "2:1 2:1"},
      {"tomita3", 5, 27, 15, "2:1 2:Z2 2:1 2:1 2:1"},
      {"tomita4", 4, 12, 9, "2:1 2:1 2:1"},
      {"tomita5", 4, 4, 5, "4:Z2^2"},
      {"tomita6", 3, 3, 4, "3:Z3"},
      {"tomita7", 5, 9, 10, "2:1 2:1 2:1 2:1 2:1"},
      {"aa", 2, 2, 3, "2:Z2"},
      {"aaaa", 4, 4, 5, "4:Z4"},
      {"abab", 5, 10, 8, "2:1 3:Z2"},
      {"parity", 2, 2, 3, "2:Z2"},
      {"even_pairs", 5, 5, 8, "3:1 2:1"},
      {"cycle_navigation", 5, 5, 6, "5:Z5"},
      {"mod3", 3, 3, 4, "3:Z3"},
      {"mod4", 4, 4, 5, "4:Z4"},
      {"mod5", 5, 5, 6, "5:Z5"},
      {"mod6", 6, 6, 7, "6:Z6"},
      {"mod7", 7, 7, 8, "7:Z7"},
      {"mod3_reset", 3, 6, 4, "3:Z3"},
      {"two_parities_reset", 4, 8, 5, "4:Z2^2"},
      {"contains_aba", 4, 12, 9, "2:1 2:1 2:1"},
      {"ends_with_aba", 4, 8, 7, "2:1 2:1 2:1"},
      {"contains_rotations", 8, 41, 18, "4:1 2:1 2:1"},
      {"ab_d_bc", 3, 5, 6, "2:1 2:1 2:1"},
      {"012_02", 2, 3, 3, "2:1"},
      {"abcde", 7, 17, 13, "6:1 2:1 2:1 2:1 2:1 2:1"},
      {"flip_flop", 2, 3, 3, "2:1"},
      {"dyck1_1", 3, 6, 6, "2:1 2:1"},
      {"dyck1_2", 4, 15, 10, "2:1 2:1 2:1"},
      {"dyck1_3", 5, 31, 15, "2:1 2:1 2:1 2:1"},
      {"dyck1_4", 6, 56, 21, "2:1 2:1 2:1 2:1 2:1"},
      {"dyck2_2", 8, 60, 19, "3:1 3:1 2:1"},
      {"dyck2_3", 16, 285, 42, "3:1 3:1 3:1 2:1"},
      {"s3_points", 3, 6, 4, "3:S3"},
      {"s4_points", 4, 24, 5, "4:S4"},
      {"a5_points", 5, 60, 6, "5:A5"},
      {"s5_points", 5, 120, 6, "5:S5"},
      {"arithmetic3", 10, 107, 15, "4:1 3:S3"},
      {"arithmetic5", 18, 499, 23, "4:1 5:AGL(1,5)"},
      {"third_from_end", 8, 15, 15, "2:1 2:1 2:1"},
      {"ab_and_ba", 9, 22, 23, "3:1 2:1 2:1 2:1 2:1 2:1"},
      {"t3", 3, 27, 7, "3:S3 2:Z2"},
      {"t4", 4, 256, 15, "4:S4 3:S3 2:Z2"},
      {"t5", 5, 3125, 31, "5:S5 4:S4 3:S3 2:Z2"},
  };
  ASSERT_EQ(std::size(table), examples().size());
  for (size_t i = 0; i < examples().size(); ++i) {
    const auto& [name, states, monoid, images, levels] = table[i];
    ASSERT_EQ(examples()[i].name, name);
    const auto a = examples()[i].make();
    const Cascade cascade(a);
    const auto c = classify(a, cascade);
    EXPECT_EQ(c.states, states) << name;
    EXPECT_EQ(c.monoid, monoid) << name;
    EXPECT_EQ(static_cast<int64_t>(cascade.sets().size()), images) << name;
    EXPECT_EQ(levels_of(c), levels) << name;
    EXPECT_TRUE(cascade.faithful()) << name;
  }
}

TEST(Cascade, TriplesAreThePublishedNumbers) {
  for (const auto& [name, triples] :
       std::vector<std::pair<const char*, size_t>>{{"tomita2", 6},
                                                   {"tomita3", 31},
                                                   {"tomita4", 12},
                                                   {"tomita7", 30},
                                                   {"abab", 6},
                                                   {"even_pairs", 8},
                                                   {"contains_aba", 12},
                                                   {"contains_rotations", 36},
                                                   {"ab_d_bc", 24},
                                                   {"abcde", 175},
                                                   {"dyck1_3", 20},
                                                   {"dyck2_2", 44},
                                                   {"dyck2_3", 104},
                                                   {"arithmetic3", 30},
                                                   {"arithmetic5", 40},
                                                   {"third_from_end", 14},
                                                   {"t3", 12},
                                                   {"t4", 34},
                                                   {"t5", 83}}) {
    const auto r = Cascade(find_example(name).make()).reachable();
    size_t most = 0;
    for (size_t d = 0; d + 1 < r.triples.size(); ++d) most += r.triples[d].size();
    EXPECT_EQ(most, triples) << name;
  }
}

TEST(Cascade, RandomAutomataAreFollowedExactly) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const auto a = random_automaton(seed, 8, 3);
    EXPECT_TRUE(Cascade(a).faithful()) << "seed " << seed;
  }
}

// A cascade that hands on the new coordinate where the old one is due must be wrong: otherwise the
// test above would prove nothing.
TEST(Cascade, OldCoordinatesMatter) {
  const auto a = find_example("ends_with_aba").make();
  const Cascade cascade(a);
  Random random(5, 0, 0);
  auto c = cascade.coordinates(a.start);
  int64_t q = a.start, wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto x = static_cast<int64_t>(random.below(2));
    Cascade::Triple triple{0, 0, x};
    for (int64_t d = 1; d <= cascade.levels(); ++d) {
      const auto action = cascade.action(d, {triple.after, triple.after, x});
      auto& now = c[static_cast<size_t>(d - 1)];
      if (action.kind == LevelAction::kPermutation) now = action.tiles[static_cast<size_t>(now)];
      if (action.kind == LevelAction::kReset) now = action.target;
      const auto& after = cascade.sets()[static_cast<size_t>(triple.after)];
      if (after.depth == d) triple.after = after.tiles[static_cast<size_t>(now)];
    }
    q = a.step(q, x);
    wrong += cascade.state(c) != q;
  }
  EXPECT_GT(wrong, 200);
}

// The classes that follow from groups of image sets, against every element of the monoid.
TEST(Classify, AgreesWithTheMonoid) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const auto a = random_automaton(seed + 1000, 6, 3);
    const auto c = classify(a, Cascade(a));
    const auto monoid = transition_monoid(a, 200000);
    ASSERT_TRUE(monoid);
    bool aperiodic = true, two = true;
    std::set<int64_t> primes;
    for (const auto& f : *monoid) {
      int64_t p = period(f);
      aperiodic &= p == 1;
      two &= (p & (p - 1)) == 0;
      for (int64_t d = 2; p > 1; ++d)
        for (; p % d == 0; p /= d) primes.insert(d);
    }
    EXPECT_EQ(c.aperiodic, aperiodic) << "seed " << seed;
    EXPECT_EQ(c.two_group, two) << "seed " << seed;
    EXPECT_EQ(c.period_primes, std::vector<int64_t>(primes.begin(), primes.end())) << seed;
  }
}

TEST(Classify, DefiniteIsWhatTheLastLettersDecide) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const auto a = random_automaton(seed + 5000, 5, 2);
    const auto c = classify(a, Cascade(a));
    // Words of length k as maps, until all are constant or maps repeat.
    std::set<std::vector<int>> maps = {Automaton(a).letter(0)};
    std::vector<int> identity;
    for (int s = 0; s < a.states; ++s) identity.push_back(s);
    maps = {identity};
    std::optional<int64_t> k;
    for (int64_t length = 0; length <= 40 && !k; ++length) {
      const bool constant = std::all_of(maps.begin(), maps.end(), [](const auto& f) {
        return std::set<int>(f.begin(), f.end()).size() == 1;
      });
      if (constant) k = length;
      std::set<std::vector<int>> longer;
      for (const auto& f : maps)
        for (int64_t x = 0; x < a.symbols; ++x) {
          auto g = f;
          for (int& s : g) s = static_cast<int>(a.step(s, x));
          longer.insert(g);
        }
      maps = std::move(longer);
    }
    EXPECT_EQ(c.definite, k) << "seed " << seed;
  }
}

TEST(Classify, DerivedLengthCountsPointsNotTiles) {
  const std::vector<std::vector<int>> maps = {{1, 2, 3, 0}, {0, 3, 2, 1}, {0, 2, 2, 0}};
  const auto a = Automaton::from(4, 3, [&](int64_t s, int64_t x) {
    return maps[static_cast<size_t>(x)][static_cast<size_t>(s)];
  });
  EXPECT_EQ(classify(a, Cascade(a)).derived_length, 2);
  EXPECT_EQ(classify(find_example("a5_points").make(), Cascade(find_example("a5_points").make()))
                .derived_length,
            std::nullopt);
}

}  // namespace
}  // namespace lrnn::automata
