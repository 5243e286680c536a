#include "compile/margin.h"

#include <gtest/gtest.h>

#include "compile/certificate.h"
#include "compile/scales.h"
#include "tests/compile/suite.h"

// How far weights may move: what is named holds when they do, and not much more would.
namespace lrnn::compile {
namespace {

automata::Subject language(const std::string& regex, const std::string& alphabet) {
  automata::Source source;
  source.has_regex = true, source.regex = regex, source.alphabet = alphabet;
  return automata::load(source);
}

struct Named {
  const char* name;
  automata::Subject subject;
};
std::vector<Named> five() {
  return {{"parity", example("parity")},
          {"flip_flop", example("flip_flop")},
          {"S3", group("S3")},
          {"S5", group("S5", "generators")},
          {"(ab|ba)*", language("(ab|ba)*", "ab")}};
}

MarginTrial trial(const Compiled& c, double weight, int64_t random = 4) {
  const auto model = model_of(c.weights);
  return try_margin(*model, c.subject.automaton, tokens_of(c),
                    {.weight = weight, .length = kMarginLength, .random = random});
}

TEST(Margin, HoldsAndIsNotMuchTooSmall) {
  int64_t broken = 0;
  for (const auto& [name, subject] : five()) {
    const auto c = compile(subject, {});
    const auto margin = certify(*c, *model_of(c->weights)).margin;
    EXPECT_GE(margin.weight, kAnswerMargin) << name << ": " << margin.limit;
    EXPECT_EQ(margin.length, 256) << name;
    EXPECT_EQ(trial(*c, margin.weight).wrong, 0) << name;
    const auto beyond = trial(*c, 3 * margin.weight);
    EXPECT_GT(beyond.wrong, 0) << name;
    broken += beyond.wrong;
  }
  EXPECT_GE(broken, 8);  // random directions break, too, not only the worst ones
}

// Deep cascades, states written by tokens, keys through SiLU, heads that drift.
TEST(Margin, HoldsForEveryKindOfPlan) {
  struct Case {
    automata::Subject subject;
    Profile profile = Profile::kNative;
    bool drift = false;
  };
  for (const auto& [subject, profile, drift] :
       std::vector<Case>{{example("abab")},
                         {example("dyck1_3")},
                         {example("t3")},
                         {example("third_from_end")},
                         {example("s5_points")},
                         {example("abab"), Profile::kNativeBos},
                         {example("tomita5"), Profile::kFla},
                         {group("A5"), Profile::kNative, true}}) {
    Options options;
    options.profile = profile, options.limits.drift = drift;
    if (drift) options.limits.householders = 2;
    const auto c = compile(subject, options);
    const auto margin = margin_of(*c);
    EXPECT_GT(margin.weight, 1e-3) << subject.title << " " << name_of(profile);
    EXPECT_EQ(trial(*c, margin.weight, 2).wrong, 0) << subject.title << " " << name_of(profile);
  }
}

TEST(Margin, ShrinksWithTheLength) {
  const auto c = compile(group("S5", "generators"), {});
  EXPECT_EQ(breaks(*c, 0.03, 256), "");
  EXPECT_EQ(breaks(*c, 0.03, 100000), "the answers");
  EXPECT_LT(margin_of(*c, 20000).weight, margin_of(*c, 256).weight);
}

// Where SiLU keeps keys small reflections shrink the state, and gates have nothing left to spare.
TEST(Margin, IsNotNamedWhereNoneCanBeShown) {
  Options options;
  options.profile = Profile::kFla;
  const auto c = compile(example("s5_points"), options);
  const auto margin = margin_of(*c);
  EXPECT_EQ(margin.weight, 0);
  EXPECT_EQ(margin.limit, "the gates of layer 1");
  const auto late = margin_of(*c, int64_t(c->t_safe) + 1);
  EXPECT_EQ(late.weight, 0);
  EXPECT_NE(late.limit.find("tokens only"), std::string::npos) << late.limit;
}

TEST(Margin, IsThatOfTheWeightsAsCompiled) {
  const auto c = compile(example("parity"), {});
  const auto model = model_of(c->weights);
  for (auto& item : model->named_parameters()) {
    torch::NoGradGuard no_grad;
    if (item.key() == "lm_head.weight") item.value().view(-1)[1] += 1e-3;
  }
  const auto certificate = certify(*c, *model);
  EXPECT_TRUE(certificate.holds());
  EXPECT_EQ(certificate.margin.weight, 0);
  EXPECT_EQ(certificate.margin.limit, "lm_head.weight is not as it was compiled");
}

// Trying leaves the weights as they were, to the bit.
TEST(Margin, IsTriedWithoutATrace) {
  const auto c = compile(example("flip_flop"), {});
  const auto model = model_of(c->weights), same = model_of(c->weights);
  try_margin(*model, c->subject.automaton, tokens_of(*c), {.weight = 0.1, .random = 1});
  const auto a = model->named_parameters(), b = same->named_parameters();
  for (const auto& item : a) EXPECT_TRUE(item.value().equal(b[item.key()])) << item.key();
}

// The loss on words that a model follows is 0 in float32, and so is every gradient: training has
// nothing to change.
TEST(Margin, TheOwnTaskHasNoGradient) {
  for (const auto& [name, subject] : five()) {
    const auto c = compile(subject, {});
    const auto r = run(*c, 500);
    EXPECT_EQ(r.wrong, 0) << name;
    EXPECT_GT(r.margin, 104) << name;
  }
}

}  // namespace
}  // namespace lrnn::compile
