#include <gtest/gtest.h>

#include <cmath>

#include "tests/compile/suite.h"

// The fewest Householders of one layer, found by the compiler itself.
namespace lrnn::compile {
namespace {

struct Minimum {
  const char *group, *letters;
  int64_t householders;
  bool exact;
};

class Minima : public testing::TestWithParam<Minimum> {};

TEST_P(Minima, AreFoundAndFollowed) {
  const auto& m = GetParam();
  Options options;
  options.limits.layers = 1;
  options.limits.drift = true;
  options.limits.householders = m.householders;
  const auto c = compile(group(m.group, m.letters), options);
  EXPECT_EQ(c->built->network.householders(), m.householders);
  EXPECT_EQ(c->exactness == Exactness::kExact, m.exact);
  EXPECT_EQ(std::isinf(c->t_safe), m.exact);
  EXPECT_EQ(run(*c, 2000).wrong, 0);
  if (m.householders == 1) return;
  options.limits.householders = m.householders - 1;
  EXPECT_THROW(compile(group(m.group, m.letters), options), Error);
}

INSTANTIATE_TEST_SUITE_P(
    OneLayer, Minima,
    testing::Values(Minimum{"S3", "all", 2, true}, Minimum{"S4", "all", 2, false},
                    Minimum{"A5", "all", 2, false}, Minimum{"S5", "all", 4, true},
                    Minimum{"Z3", "all", 2, true}, Minimum{"Z4", "all", 2, false},
                    Minimum{"Z5", "all", 2, false}, Minimum{"Z7", "all", 2, false},
                    Minimum{"Z60", "all", 2, false}, Minimum{"D4", "all", 2, false},
                    Minimum{"D5", "all", 2, false}, Minimum{"D7", "all", 2, false},
                    Minimum{"Q8", "all", 4, true}, Minimum{"S3", "swaps", 1, true},
                    Minimum{"S4", "swaps", 1, true}, Minimum{"S5", "swaps", 1, true},
                    Minimum{"(123456),(12)", "", 3, true}),
    [](const auto& info) {
      std::string name = std::string(info.param.group) + info.param.letters;
      std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
      return name;
    });

// What the planner promises is what is measured: right up to T_safe (as far as a test can wait),
// with a margin left.
TEST(Drift, TheMarginIsMeasured) {
  for (const char* name : {"A5", "Z7"}) {
    Options options;
    options.limits.drift = true, options.limits.householders = 2;
    const auto c = compile(group(name), options);
    ASSERT_TRUE(std::isfinite(c->t_safe)) << name;
    EXPECT_GT(c->t_safe, 10000) << name;
    const auto r = run(*c, 20000);
    EXPECT_EQ(r.wrong, 0) << name;
    EXPECT_GT(r.margin, 0) << name;
  }
}

// fla's norm shrinks the state at every reflection: the planner's T_safe is a length that holds,
// and not one that is a hundred times too careful.
TEST(Drift, OfFlasNormComesWhenItIsSaidTo) {
  Options options;
  options.profile = Profile::kFla;
  const auto c = compile(group("S3"), options);
  ASSERT_TRUE(std::isfinite(c->t_safe));
  const auto safe = run(*c, int64_t(c->t_safe));
  EXPECT_EQ(safe.wrong, 0);
  const auto late = run(*c, int64_t(c->t_safe) * 30);
  EXPECT_LT(late.margin, safe.margin / 4);
}

// A start that is not the first state, in every profile: the initial state is a learnt tensor or
// tokens before the word.
TEST(Start, NeedNotBeTheFirstState) {
  auto a = automata::Automaton::from(
      5, 2, [](int64_t s, int64_t x) { return x ? (s + 1) % 5 : (5 - s) % 5; });
  a.start = 3;
  for (const auto profile :
       {Profile::kNative, Profile::kNativeBos, Profile::kFla, Profile::kFp64}) {
    Options options;
    options.profile = profile;
    const auto c = compile({"five places", a, false}, options);
    EXPECT_EQ(c->subject.automaton.start, 3);
    EXPECT_EQ(run(*c, 500).wrong, 0) << name_of(profile);
  }
}

}  // namespace
}  // namespace lrnn::compile
