#include "compile/verdict.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace lrnn::compile {
namespace {

// D1 to D7 are derived in docs/theory.md.
constexpr const char* kParity = "Theorem 1 of Grazzi et al.";
constexpr const char* kCounting = "Theorem 2 of Grazzi et al.";
constexpr const char* kStarFree = "Sarrof et al., Theorem 4";
constexpr const char* kTwoGroups = "D2";
constexpr const char* kAbelianSeries = "Shakerinava et al. 2026";
constexpr const char* kRobust = "D3";
constexpr const char* kUniversal = "D4";
constexpr const char* kOneLayer = "D1";
constexpr const char* kOrthogonal = "DeltaProduct, orthogonal groups";
constexpr const char* kSymmetric = "DeltaProduct, symmetric groups in 3 or 4 layers";
constexpr const char* kToggles = "D5";
constexpr const char* kSwings = "D6";
constexpr const char* kSnaps = "D7";
constexpr const char* kNothing = "no theorem either way";

// The number of rows is the number of questions; each is answered by one function below.
class Judge {
 public:
  Judge(const Class& c, const Evidence& e, const std::vector<Plan>& plans)
      : c_(c), e_(e), plans_(plans) {}

  Verdict ask(Verdict v) const {
    switch (v.family) {
      case Verdict::kDiagonal: return v.negative ? signed_diagonal(v) : positive_diagonal(v);
      case Verdict::kDiagonalComplex: return complex_diagonal(v);
      case Verdict::kTitans: return titans(v);
      case Verdict::kTtt: return ttt(v);
      default: return v.negative ? reflecting(v) : contracting(v);
    }
  }

 private:
  static Verdict yes(Verdict v, Verdict::How how, std::string theorem, std::string reason) {
    v.answer = Verdict::kYes, v.how = how, v.theorem = std::move(theorem),
    v.reason = std::move(reason);
    return v;
  }
  static Verdict no(Verdict v, std::string theorem, std::string reason) {
    v.answer = Verdict::kNo, v.theorem = std::move(theorem), v.reason = std::move(reason);
    return v;
  }
  static Verdict unknown(Verdict v, std::string reason) {
    v.theorem = kNothing, v.reason = std::move(reason);
    return v;
  }
  static std::string layers_text(int64_t n) { return cat(n, n == 1 ? " layer" : " layers"); }
  static bool within(const std::optional<int64_t>& limit, int64_t needed) {
    return !limit || needed <= *limit;
  }

  // "'ab' has period 3": a word whose powers never settle.
  std::string turning() const {
    if (e_.turning_word.empty()) return "some word has powers that never settle";
    return cat("'", e_.turning_word, "' has period ", e_.turning_period);
  }

  Verdict positive_diagonal(const Verdict& v) const {
    if (!c_.aperiodic)
      return no(v, c_.two_group || e_.turning_period % 2 == 0 ? kParity : kStarFree,
                cat(turning(), ", and no eigenvalue is negative"));
    const int64_t levels = static_cast<int64_t>(c_.levels.size());
    if (within(v.layers, levels))
      return yes(v, Verdict::kExistence, kStarFree,
                 cat("star-free: ", layers_text(levels), " of flip-flops do"));
    return unknown(v, cat("star-free, and ", layers_text(levels), " of flip-flops do; fewer may"));
  }

  Verdict signed_diagonal(const Verdict& v) const {
    if (!c_.two_group)
      return no(v, kTwoGroups,
                cat("a group of the automaton has elements of order ", e_.odd_prime,
                    ", and real eigenvalues have period 1 or 2"));
    if (v.layers && *v.layers < 62 && e_.longest_two_power > int64_t{1} << *v.layers)
      return no(v, kCounting,
                cat("some word has period ", e_.longest_two_power, ", and ", *v.layers,
                    " real layers have periods up to ", int64_t{1} << *v.layers));
    if (c_.group) {
      if (within(v.layers, e_.halvings))
        return yes(v, Verdict::kExistence, kTwoGroups,
                   cat("a 2-group: ", layers_text(e_.halvings), " of toggles do"));
      if (*v.layers == 1)
        return no(v, kOneLayer, "one real diagonal layer follows elementary abelian 2-groups only");
    }
    if (c_.aperiodic) return positive_diagonal(v);
    if (!v.layers)
      return yes(v, Verdict::kExistence, kTwoGroups,
                 "every group of the automaton is a 2-group: toggles and flip-flops do");
    return unknown(
        v, "toggles and flip-flops do with enough layers; how many are needed is not known");
  }

  Verdict complex_diagonal(const Verdict& v) const {
    if (!c_.solvable)
      return no(v, kAbelianSeries,
                c_.group ? "the group is not solvable"
                         : "a group of the automaton is not solvable (for automata that are no "
                           "groups: a sketch of a proof)");
    const int64_t length = *c_.derived_length;
    if (c_.group && !within(v.layers, length))
      return no(v, kAbelianSeries,
                cat("the group has derived length ", length, ", so it takes ", length, " layers"));
    if (c_.group || !v.layers)
      return yes(v, Verdict::kExistence, kAbelianSeries,
                 c_.group ? cat("a group of derived length ", length)
                          : "every group of the automaton is solvable");
    if (c_.aperiodic) return positive_diagonal(v);
    return unknown(v, "enough layers do; how many are needed is not known");
  }

  const Plan* exact_plan(const Verdict& v) const {
    for (const auto& p : plans_)
      if (p.exactness == Exactness::kExact && within(v.layers, p.layers) &&
          within(v.householders, p.householders) && p.negative <= v.negative)
        return &p;
    return nullptr;
  }
  static std::string size_of(const Plan& p) {
    return cat(layers_text(p.layers), ", ", p.householders,
               p.householders == 1 ? " Householder" : " Householders");
  }
  Verdict compiled(const Verdict& v, const Plan& p) const {
    const bool group = p.kind == PlanKind::kGroup;
    return yes(v, Verdict::kCompiled, group ? "Theorem 3 of Grazzi et al." : kUniversal,
               cat(name_of(p.kind), " plan, exact: ", size_of(p)));
  }

  Verdict contracting(const Verdict& v) const {
    if (!c_.aperiodic) {
      // Two factors in [0, 1] have real eigenvalues; the theorem asks that of single letters only.
      const bool letter = std::any_of(c_.letter_periods.begin(), c_.letter_periods.end(),
                                      [](int64_t p) { return p % 2 == 0; });
      const bool exact = letter && v.householders && *v.householders <= 2;
      return no(v, exact ? kParity : kRobust,
                cat(turning(), ", and without the eigenvalue -1 its effect fades",
                    exact ? "" : " (for decoders that ignore small perturbations)"));
    }
    if (const auto* p = exact_plan(v)) return compiled(v, *p);
    if (const auto out = overwrites(v)) return *out;
    return unlimited(v);
  }

  Verdict reflecting(const Verdict& v) const {
    if (const auto* p = exact_plan(v)) return compiled(v, *p);
    for (const auto& p : plans_)
      if (within(v.layers, p.layers) && within(v.householders, p.householders))
        return yes(v, Verdict::kExistence, kOrthogonal,
                   cat(name_of(p.kind), " plan with ", size_of(p),
                       "; rounding makes it drift, so it compiles with --drift only"));
    if (const auto out = overwrites(v)) return *out;
    if (v.layers && *v.layers == 1) {
      if (v.householders && *v.householders == 1 && e_.one_letter_turns_thrice)
        return no(v, kOneLayer,
                  cat("reading '", e_.restless_letter,
                      "' again and again has a period above 2, and one reflection has not"));
      if (v.householders && *v.householders < 4 && e_.five_cycle_in_s5)
        return no(v, "arXiv 2609.24797, Theorem 4 (published, not proved again here)",
                  "S5 with a letter of order 5 takes 4 Householders in one layer");
    }
    if (c_.group && v.layers && *v.layers >= (v.householders && *v.householders == 1 ? 4 : 3))
      return yes(v, Verdict::kExistence, kSymmetric,
                 "a table over the last tokens feeds one swap at a time; it is too large to build");
    return unlimited(v);
  }

  // Without momentum and forgetting it is DeltaNet, so what that can do it can. What DeltaNet
  // cannot do says nothing: its proofs have one reflection a token and no momentum.
  Verdict titans(const Verdict& v) const {
    Verdict as = v;
    as.family = Verdict::kDiagonal;
    if (const Verdict toggles = signed_diagonal(as); toggles.answer == Verdict::kYes)
      return yes(v, Verdict::kExistence, kToggles,
                 cat("a head keeps, overwrites or flips a number: ", toggles.reason));
    as.family = Verdict::kDeltaProduct, as.householders = 1;
    const Verdict net = v.negative ? reflecting(as) : contracting(as);
    if (net.answer == Verdict::kYes)
      return yes(v, Verdict::kExistence, net.theorem,
                 cat("without momentum and forgetting it is DeltaNet: ", net.reason));
    if (c_.group && c_.symbols == 1)
      return yes(
          v, Verdict::kExistence, kSwings,
          "there is one letter, and a memory with momentum swings with any period from 6 on");
    return unknown(v,
                   "momentum gives complex eigenvalues, so the limits of DeltaNet do not bind it");
  }

  // Not linear in its state, so theorems about eigenvalues neither grant nor forbid anything.
  Verdict ttt(const Verdict& v) const {
    if (c_.group && c_.two_group && e_.halvings <= 1)
      return yes(v, Verdict::kExistence, kSnaps,
                 "with mini-batches of one token a step that is too large flips a sign, and snaps");
    return unknown(v, "it is not linear in its state, so eigenvalues decide nothing");
  }

  // Constructions that a theorem grants and that we do not build: registers written row by row.
  std::optional<Verdict> overwrites(const Verdict& v) const {
    if (c_.definite && within(v.householders, *c_.definite) && v.negative)
      return yes(v, Verdict::kExistence, "shift register",
                 cat("the last ", *c_.definite, " letters decide the state"));
    if (c_.permutation_reset && v.negative && within(v.householders, c_.states))
      return yes(v, Verdict::kExistence, "Theorem 4 of Grazzi et al.",
                 "every letter permutes the states or overwrites them row by row");
    if (v.family == Verdict::kGatedDeltaProduct && c_.permutation_reset && v.negative &&
        within(v.householders, c_.states - 1))
      return yes(v, Verdict::kExistence, "DeltaProduct, gated",
                 "the gate forgets, then one write resets");
    return std::nullopt;
  }

  Verdict unlimited(const Verdict& v) const {
    if (!v.layers)
      return yes(v, Verdict::kExistence, kUniversal, "enough layers follow every regular language");
    std::string best = "no plan within these limits is known";
    if (!plans_.empty()) best += cat("; the smallest we have takes ", size_of(plans_[0]));
    return unknown(v, best);
  }

  const Class& c_;
  const Evidence& e_;
  const std::vector<Plan>& plans_;
};

}  // namespace

std::string name_of(Verdict::Family family) {
  static const char* names[] = {
      "diagonal", "diagonal_complex", "delta_product", "gated_delta_product", "titans", "ttt"};
  return names[family];
}
std::string name_of(Verdict::Answer answer) {
  return answer == Verdict::kYes ? "yes" : answer == Verdict::kNo ? "no" : "unknown";
}
std::string name_of(Verdict::How how) {
  return how == Verdict::kCompiled    ? "compiled"
         : how == Verdict::kExistence ? "existence"
                                      : "theorem";
}

std::vector<Verdict> verdicts(const Class& c, const Evidence& e, const std::vector<Plan>& plans) {
  std::set<int64_t> layers = {1, 2, 3, 4}, householders = {1, 2, 3, 4};
  for (const auto& p : plans) layers.insert(p.layers), householders.insert(p.householders);
  std::vector<std::optional<int64_t>> depths(layers.begin(), layers.end()),
      steps(householders.begin(), householders.end());
  depths.push_back(std::nullopt);
  steps.push_back(std::nullopt);
  const Judge judge(c, e, plans);
  std::vector<Verdict> out;
  const auto ask = [&](Verdict::Family family, bool negative, std::optional<int64_t> k,
                       std::optional<int64_t> l) {
    Verdict v;
    v.family = family, v.negative = negative, v.householders = k, v.layers = l;
    out.push_back(judge.ask(v));
  };
  for (const auto& l : depths) ask(Verdict::kDiagonal, false, std::nullopt, l);
  for (const auto& l : depths) ask(Verdict::kDiagonal, true, std::nullopt, l);
  for (const auto& l : depths) ask(Verdict::kDiagonalComplex, true, std::nullopt, l);
  for (const auto family : {Verdict::kDeltaProduct, Verdict::kGatedDeltaProduct})
    for (const bool negative : {false, true})
      for (const auto& k : steps)
        for (const auto& l : depths) ask(family, negative, k, l);
  for (const bool negative : {false, true})
    for (const auto& l : depths) ask(Verdict::kTitans, negative, std::nullopt, l);
  for (const auto& l : depths) ask(Verdict::kTtt, true, std::nullopt, l);
  return out;
}

}  // namespace lrnn::compile
