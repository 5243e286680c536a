#include "compile/plan/plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "automata/algebra/group.h"
#include "automata/read/source.h"
#include "base/error.h"
#include "base/random.h"

namespace lrnn::compile {
namespace {

std::vector<Plan> all_plans(const Automaton& a) {
  auto cascade = std::make_shared<Cascade>(a);
  return plans(a, automata::classify(a, *cascade), cascade);
}

std::string text(const Plan& p) {
  return name_of(p.kind) + " " + std::to_string(p.layers) + "x" + std::to_string(p.householders) +
         (p.negative ? "-" : "") + (p.exactness == Exactness::kDrift ? " drift" : "");
}

// The symbol that avoids states which are never left, mostly.
std::vector<int64_t> lively_word(const Automaton& a, uint64_t seed, int length) {
  Random random(31, 0, seed);
  std::vector<int64_t> out;
  int64_t q = a.start;
  for (int i = 0; i < length; ++i) {
    auto x = static_cast<int64_t>(random.below(static_cast<uint64_t>(a.symbols)));
    const auto stuck = [&](int64_t s) {
      for (int64_t y = 0; y < a.symbols; ++y)
        if (a.step(s, y) != s) return false;
      return true;
    };
    for (int64_t tries = 0; tries < a.symbols && stuck(a.step(q, x)) && random.below(200); ++tries)
      x = (x + 1) % a.symbols;
    out.push_back(x);
    q = a.step(q, x);
  }
  return out;
}

void follow(const Automaton& a, const Plan& plan, const std::string& name) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const auto word = lively_word(a, seed, 150);
    const auto got = run(plan, a, word);
    int64_t q = a.start;
    for (size_t i = 0; i < word.size(); ++i) {
      q = a.step(q, word[i]);
      ASSERT_EQ(got[i], q) << name << ", " << text(plan) << ", letter " << i;
    }
  }
}

// What the first exact plan needs at most: published layers and Householders of the suite.
TEST(Plans, SuiteStaysWithinThePublishedSizes) {
  const std::map<std::string, std::pair<int, int>> most = {{"tomita1", {1, 1}},
                                                           {"tomita2", {2, 1}},
                                                           {"tomita3", {6, 1}},
                                                           {"tomita4", {3, 1}},
                                                           {"tomita5", {1, 1}},
                                                           {"tomita6", {1, 2}},
                                                           {"tomita7", {5, 1}},
                                                           {"aa", {1, 1}},
                                                           {"aaaa", {1, 3}},
                                                           {"abab", {3, 1}},
                                                           {"parity", {1, 1}},
                                                           {"even_pairs", {2, 1}},
                                                           {"cycle_navigation", {1, 4}},
                                                           {"mod3", {1, 2}},
                                                           {"mod4", {1, 3}},
                                                           {"mod5", {1, 4}},
                                                           {"mod6", {1, 2}},
                                                           {"mod7", {1, 6}},
                                                           {"mod3_reset", {2, 2}},
                                                           {"two_parities_reset", {2, 1}},
                                                           {"contains_aba", {3, 1}},
                                                           {"ends_with_aba", {1, 1}},
                                                           {"contains_rotations", {3, 1}},
                                                           {"ab_d_bc", {3, 1}},
                                                           {"012_02", {1, 1}},
                                                           {"abcde", {6, 1}},
                                                           {"flip_flop", {1, 1}},
                                                           {"dyck1_1", {2, 1}},
                                                           {"dyck1_2", {3, 1}},
                                                           {"dyck1_3", {4, 1}},
                                                           {"dyck1_4", {5, 1}},
                                                           {"dyck2_2", {3, 1}},
                                                           {"dyck2_3", {4, 1}},
                                                           {"s3_points", {1, 2}},
                                                           {"s4_points", {1, 3}},
                                                           {"a5_points", {1, 4}},
                                                           {"s5_points", {1, 4}},
                                                           {"arithmetic3", {3, 2}},
                                                           {"arithmetic5", {3, 4}},
                                                           {"third_from_end", {1, 1}},
                                                           {"ab_and_ba", {6, 1}},
                                                           {"t3", {4, 2}},
                                                           {"t4", {6, 3}},
                                                           {"t5", {8, 4}}};
  for (const auto& e : automata::examples()) {
    const auto a = e.make();
    const auto all = all_plans(a);
    const auto best = choose(all, {});
    EXPECT_LE(best.layers, most.at(e.name).first) << e.name;
    EXPECT_LE(best.householders, most.at(e.name).second) << e.name;
    EXPECT_TRUE(std::isinf(best.t_safe));
    for (const auto& p : all) follow(a, p, e.name);
  }
}

TEST(Plans, RandomAutomataAreFollowed) {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    Random random(41, 0, seed);
    const int64_t n = random.between(2, 8), m = random.between(1, 3);
    const auto a = automata::reachable(
        Automaton::from(n, m, [&](int64_t, int64_t) { return random.between(0, n - 1); }));
    for (const auto& p : all_plans(a)) follow(a, p, "seed " + std::to_string(seed));
  }
}

std::string refused(const std::vector<Plan>& all, const Limits& limits) {
  try {
    choose(all, limits);
    return "no error";
  } catch (const Error& e) {
    return std::string(e.what()) + " | " + e.hint();
  }
}

TEST(Plans, LimitsChooseOrSayWhatWouldDo) {
  const auto all = all_plans(automata::find_example("mod5").make());
  Limits limits;
  EXPECT_EQ(text(choose(all, limits)), "group 1x4-");
  limits.drift = true;
  EXPECT_EQ(text(choose(all, limits)), "group 1x2- drift");
  limits.householders = 1;
  EXPECT_EQ(text(choose(all, limits)), "dihedral 2x1- drift");
  limits.drift = false;
  EXPECT_EQ(
      refused(all, limits),
      "no plan fits these limits | plans: --layers 1 --householders 2 --range -11 --drift, or "
      "--layers 1 --householders 4 --range -11, or --layers 2 --householders 1 --range -11 "
      "--drift");
  Limits positive;
  positive.negative = false;
  EXPECT_EQ(text(choose(all_plans(automata::find_example("contains_aba").make()), positive)),
            "holonomy 3x1");
  EXPECT_THROW(choose(all, positive), Error);
}

TEST(Plans, ProductsOfResetsRunSideBySide) {
  // Two bits that are written independently: four states, one layer.
  const auto a = automata::reachable(Automaton::from(4, 5, [](int64_t s, int64_t x) {
    return x == 4 ? s : x < 2 ? (s & 2) | x : (s & 1) | (x - 2) << 1;
  }));
  const auto all = all_plans(a);
  EXPECT_EQ(text(all[0]), "parallel 1x1");
  EXPECT_EQ(all[0].components.size(), 2u);
  follow(a, all[0], "two bits");
}

TEST(Plans, GroupsInTwoLayersOfReflections) {
  for (const char* name : {"Z3", "Z60", "D7", "D5"}) {
    const auto a = automata::right_multiplication(automata::Group(name));
    const auto all = all_plans(a);
    Limits limits;
    limits.householders = 1, limits.drift = true;
    const auto& plan = choose(all, limits);
    EXPECT_EQ(plan.kind, PlanKind::kDihedral) << name;
    EXPECT_EQ(plan.layers, 2);
    follow(a, plan, name);
  }
}

}  // namespace
}  // namespace lrnn::compile
