#include "compile/verdict.h"

#include <gtest/gtest.h>

#include "automata/read/source.h"
#include "base/error.h"
#include "base/random.h"

namespace lrnn::compile {
namespace {

class Judged {
 public:
  explicit Judged(const automata::Source& source) : subject_(automata::load(source)) {
    const auto& a = subject_.automaton;
    auto cascade = std::make_shared<Cascade>(a);
    class_ = automata::classify(a, *cascade);
    plans_ = plans(a, class_, cascade);
    verdicts_ = verdicts(class_, evidence(a, class_, *cascade), plans_);
  }
  const Class& type() const { return class_; }
  const std::vector<Plan>& all_plans() const { return plans_; }
  const std::vector<Verdict>& all() const { return verdicts_; }

  static constexpr int64_t kAny = 0;
  // "yes compiled", "yes existence", "no", "unknown"
  std::string operator()(Verdict::Family family, bool negative, int64_t k, int64_t l) const {
    for (const auto& v : verdicts_)
      if (v.family == family && v.negative == negative && v.householders.value_or(kAny) == k &&
          v.layers.value_or(kAny) == l)
        return name_of(v.answer) + (v.answer == Verdict::kYes ? " " + name_of(v.how) : "");
    return "no such row";
  }
  bool says_yes(Verdict::Family family, bool negative, int64_t k, int64_t l) const {
    return (*this)(family, negative, k, l).substr(0, 3) == "yes";
  }

 private:
  automata::Subject subject_;
  Class class_;
  std::vector<Plan> plans_;
  std::vector<Verdict> verdicts_;
};

automata::Source of_group(const std::string& group, const std::string& letters = "") {
  automata::Source s;
  s.group = group, s.letters = letters;
  return s;
}
automata::Source of_example(const std::string& name) {
  automata::Source s;
  s.example = name;
  return s;
}

constexpr auto kDiag = Verdict::kDiagonal;
constexpr auto kComplex = Verdict::kDiagonalComplex;
constexpr auto kDelta = Verdict::kDeltaProduct;
constexpr auto kGated = Verdict::kGatedDeltaProduct;
constexpr auto kTitans = Verdict::kTitans;
constexpr auto kTtt = Verdict::kTtt;
constexpr int64_t kAny = Judged::kAny;

TEST(Verdicts, Parity) {
  const Judged j(of_example("parity"));
  EXPECT_EQ(j(kDiag, false, kAny, kAny), "no");
  EXPECT_EQ(j(kDiag, true, kAny, 1), "yes existence");
  EXPECT_EQ(j(kDelta, false, 1, kAny), "no");
  EXPECT_EQ(j(kDelta, false, kAny, kAny), "no");
  EXPECT_EQ(j(kDelta, true, 1, 1), "yes compiled");
}

TEST(Verdicts, CountingModulo3) {
  const Judged j(of_group("Z3"));
  EXPECT_EQ(j(kDiag, false, kAny, kAny), "no");
  EXPECT_EQ(j(kDiag, true, kAny, kAny), "no");
  EXPECT_EQ(j(kComplex, true, kAny, 1), "yes existence");
  EXPECT_EQ(j(kDelta, true, 1, 1), "no");
  EXPECT_TRUE(j.says_yes(kDelta, true, 1, 2));
  EXPECT_EQ(j(kDelta, true, 2, 1), "yes compiled");
}

TEST(Verdicts, CountingModulo4) {
  const Judged j(of_group("Z4"));
  EXPECT_EQ(j(kDiag, true, kAny, 1), "no");
  EXPECT_EQ(j(kDiag, true, kAny, 2), "yes existence");
  EXPECT_EQ(j(kDelta, true, 1, 1), "no");
}

TEST(Verdicts, SwapsOfThreePoints) {
  const Judged j(of_group("S3", "swaps"));
  EXPECT_EQ(j(kDelta, true, 1, 1), "yes compiled");
}

TEST(Verdicts, EvenPermutationsOfFivePoints) {
  const Judged j(of_group("A5"));
  EXPECT_EQ(j(kComplex, true, kAny, kAny), "no");
  EXPECT_EQ(j(kDelta, true, 2, 1), "yes existence");  // irrational keys
  EXPECT_EQ(j(kDelta, true, 4, 1), "yes compiled");
  EXPECT_EQ(j(kDelta, true, 1, 1), "no");
  EXPECT_EQ(j(kDelta, true, 1, 4), "yes existence");
  EXPECT_EQ(j(kDelta, false, kAny, kAny), "no");
}

TEST(Verdicts, AllPermutationsOfFivePoints) {
  const Judged j(of_group("S5"));
  EXPECT_EQ(j(kDelta, true, 4, 1), "yes compiled");
  EXPECT_EQ(j(kDelta, true, 3, 1), "no");
  EXPECT_EQ(j(kComplex, true, kAny, kAny), "no");
}

TEST(Verdicts, StarFreeLanguagesNeedNoNegativeEigenvalue) {
  for (const char* name : {"tomita2", "tomita4", "tomita7", "contains_aba", "dyck1_1", "dyck1_2",
                           "dyck1_3", "dyck1_4", "dyck2_2", "dyck2_3"}) {
    const Judged j(of_example(name));
    EXPECT_EQ(j(kDiag, false, kAny, kAny), "yes existence") << name;
    EXPECT_EQ(j(kDelta, false, 1, kAny), "yes compiled") << name;
    EXPECT_EQ(j(kDelta, true, 1, kAny), "yes compiled") << name;
    EXPECT_TRUE(j.says_yes(kDiag, true, kAny, kAny));
    EXPECT_TRUE(j.says_yes(kComplex, true, kAny, kAny));
  }
}

TEST(Verdicts, TwoGroupsInsideNeedTheSignOnly) {
  for (const char* name : {"tomita3", "abab"}) {
    const Judged j(of_example(name));
    EXPECT_EQ(j(kDiag, true, kAny, kAny), "yes existence") << name;
    EXPECT_EQ(j(kDiag, false, kAny, kAny), "no") << name;
    EXPECT_EQ(j(kDelta, false, kAny, kAny), "no") << name;
    EXPECT_EQ(j(kDelta, false, 1, kAny), "no") << name;
    EXPECT_EQ(j(kGated, false, kAny, kAny), "no") << name;
    EXPECT_EQ(j(kDelta, true, 1, kAny), "yes compiled") << name;
  }
}

TEST(Verdicts, LettersDecideNotTheGroup) {
  const Judged six(of_group("(123456),(12)"));
  EXPECT_EQ(six(kDelta, true, 3, 1), "yes compiled");
  const Judged q8(of_group("Q8"));
  EXPECT_EQ(q8(kDelta, true, 4, 1), "yes compiled");
  EXPECT_NE(q8(kDelta, true, 3, 1), "no");  // we know no plan, and no theorem
}

// Sign flips with every gate in [0,1]; beyond those it has DeltaNet's powers, not its limits.
TEST(Verdicts, TitansFlipsWithinItsRange) {
  const Judged parity(of_example("parity")), three(of_group("Z3")), four(of_group("Z4")),
      five(of_group("S5"));
  EXPECT_EQ(parity(kTitans, false, kAny, 1), "yes existence");
  EXPECT_EQ(parity(kTitans, true, kAny, 1), "yes existence");
  EXPECT_EQ(four(kTitans, false, kAny, 2), "yes existence");
  EXPECT_EQ(four(kTitans, false, kAny, kAny), "yes existence");
  EXPECT_EQ(five(kTitans, false, kAny, kAny), "unknown");
  EXPECT_EQ(five(kTitans, true, kAny, kAny), "yes existence");
  EXPECT_EQ(five(kTitans, true, kAny, 1), "unknown");
  EXPECT_EQ(three(kTitans, true, kAny, 2), "yes existence");
  EXPECT_EQ(Judged(of_example("dyck1_2"))(kTitans, false, kAny, kAny), "yes existence");
  // One letter and nothing to wait for: (aaa)*.
  automata::Source thirds;
  thirds.has_regex = true, thirds.regex = "(aaa)*", thirds.alphabet = "a";
  EXPECT_EQ(Judged(thirds)(kTitans, false, kAny, 1), "yes existence");
}

// A nonlinear one is granted what was built for it, and forbidden nothing.
TEST(Verdicts, TttFlipsAndNothingElseIsKnown) {
  EXPECT_EQ(Judged(of_example("parity"))(kTtt, true, kAny, 1), "yes existence");
  for (const char* group : {"Z3", "Z4", "S5"})
    EXPECT_EQ(Judged(of_group(group))(kTtt, true, kAny, kAny), "unknown") << group;
  EXPECT_EQ(Judged(of_example("dyck1_2"))(kTtt, true, kAny, kAny), "unknown");
}

// What must hold between the rows of any automaton.
void coherent(const Judged& j) {
  for (const auto& v : j.all()) {
    EXPECT_FALSE(v.theorem.empty());
    EXPECT_FALSE(v.reason.empty());
    if (v.how == Verdict::kCompiled) {
      const bool backed =
          std::any_of(j.all_plans().begin(), j.all_plans().end(), [&](const Plan& p) {
            return p.exactness == Exactness::kExact && p.negative <= v.negative &&
                   (!v.layers || p.layers <= *v.layers) &&
                   (!v.householders || p.householders <= *v.householders);
          });
      EXPECT_TRUE(backed);
      EXPECT_EQ(v.answer, Verdict::kYes);
    }
    for (const auto& w : j.all()) {
      const auto more = [](const std::optional<int64_t>& a, const std::optional<int64_t>& b) {
        return !b || (a && *a <= *b);
      };
      const bool wider = w.family == v.family && v.negative <= w.negative &&
                         more(v.layers, w.layers) && more(v.householders, w.householders);
      // What a model can do, a larger one can.
      EXPECT_FALSE(wider && v.answer == Verdict::kYes && w.answer != Verdict::kYes);
      EXPECT_FALSE(wider && w.answer == Verdict::kNo && v.answer != Verdict::kNo);
    }
  }
}

TEST(Verdicts, LargerModelsDoWhatSmallerOnesDo) {
  for (const auto& e : automata::examples()) coherent(Judged(of_example(e.name)));
}

}  // namespace
}  // namespace lrnn::compile
