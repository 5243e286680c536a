#include <fmt/format.h>

#include <cmath>
#include <iostream>

#include "automata/read/text_format.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "compile/verdict.h"
#include "figures/table.h"

namespace lrnn::cli {
namespace {

using namespace automata;

constexpr int64_t kPrintedStates = 1000;  // larger automata are not repeated in the JSON

struct Checked {
  Subject subject;
  std::shared_ptr<const Cascade> cascade;
  Class type;
  std::vector<compile::Plan> plans;
  std::vector<compile::Verdict> verdicts;
};

Checked check_source(const Source& source) {
  Checked out;
  out.subject = load(source);
  const auto& a = out.subject.automaton;
  out.cascade = std::make_shared<Cascade>(a);
  out.type = classify(a, *out.cascade);
  out.plans = compile::plans(a, out.type, out.cascade);
  out.verdicts =
      compile::verdicts(out.type, compile::evidence(a, out.type, *out.cascade), out.plans);
  return out;
}

template <class T> Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json range_of(bool negative) { return Json::array({negative ? -1 : 0, 1}); }

// That of the eigenvalues; Titans' is that of theta, and TTT has none.
Json range_of(const compile::Verdict& v) {
  if (v.family == compile::Verdict::kTitans) return Json::array({0, v.negative ? 2 : 1});
  return v.family == compile::Verdict::kTtt ? Json(nullptr) : range_of(v.negative);
}

Json class_json(const Class& c) {
  Json levels = Json::array();
  for (const auto& level : c.levels)
    levels.push_back({{"tiles", level.tiles}, {"group", level.group}});
  return {{"states", c.states},
          {"symbols", c.symbols},
          {"monoid", or_null(c.monoid)},
          {"aperiodic", c.aperiodic},
          {"two_group", c.two_group},
          {"solvable", c.solvable},
          {"group", c.group},
          {"permutation_reset", c.permutation_reset},
          {"identity_reset", c.identity_reset},
          {"derived_length", or_null(c.derived_length)},
          {"period_primes", c.period_primes},
          {"letter_periods", c.letter_periods},
          {"definite", or_null(c.definite)},
          {"levels", levels}};
}

Json plan_json(const compile::Plan& p) {
  return {{"kind", compile::name_of(p.kind)},
          {"layers", p.layers},
          {"householders", p.householders},
          {"range", range_of(p.negative)},
          {"exactness", p.exactness == compile::Exactness::kExact ? "exact" : "drift"},
          {"t_safe", p.t_safe},
          {"summary", p.summary}};
}

Json verdict_json(const compile::Verdict& v) {
  return {{"family", compile::name_of(v.family)},
          {"range", range_of(v)},
          {"householders", or_null(v.householders)},
          {"layers", v.layers ? Json(*v.layers) : Json("any")},
          {"verdict", compile::name_of(v.answer)},
          {"how", compile::name_of(v.how)},
          {"theorem", v.theorem},
          {"reason", v.reason}};
}

Json to_json(const Checked& c) {
  Json plans = Json::array(), verdicts = Json::array();
  for (const auto& p : c.plans) plans.push_back(plan_json(p));
  for (const auto& v : c.verdicts) verdicts.push_back(verdict_json(v));
  const auto& a = c.subject.automaton;
  return {
      {"title", c.subject.title},
      {"recogniser", c.subject.recogniser},
      {"automaton", a.states <= kPrintedStates ? Json::parse(automata::to_json(a)) : Json(nullptr)},
      {"class", class_json(c.type)},
      {"plans", plans},
      {"verdicts", verdicts}};
}

std::string class_text(const Class& c) {
  std::string out = c.group       ? "a group"
                    : c.aperiodic ? "star-free (aperiodic)"
                                  : "groups inside, star-free outside";
  if (c.identity_reset)
    out = "resets only";
  else if (!c.group && c.permutation_reset)
    out = "permutations and resets";
  if (c.states == 1) out = "one state";
  if (!c.aperiodic) {
    out += c.two_group ? ", 2-groups" : c.solvable ? ", solvable" : ", not solvable";
    if (c.derived_length) out += fmt::format(", derived length {}", *c.derived_length);
    out += ", periods";
    for (const int64_t p : c.period_primes) out += fmt::format(" {}", p);
  }
  return out;
}

const compile::Verdict& find(const Checked& c, compile::Verdict::Family family, bool negative,
                             std::optional<int64_t> k, std::optional<int64_t> l) {
  for (const auto& v : c.verdicts)
    if (v.family == family && v.negative == negative && v.householders == k && v.layers == l)
      return v;
  return c.verdicts.front();
}

// "Mamba, GLA: diagonal [0,1] cannot: 'a' has period 2 (Theorem 1 ...)"
std::string sentence(const std::string& who, const compile::Verdict& v) {
  const char* answer = v.answer == compile::Verdict::kYes  ? "can"
                       : v.answer == compile::Verdict::kNo ? "cannot"
                                                           : "may or may not";
  return fmt::format("  {} {}: {} ({})\n", who, answer, v.reason, v.theorem);
}

// Householders by layers: y compiled, e exists, n no, ? unknown.
std::string grid(const Checked& c) {
  std::vector<std::optional<int64_t>> layers, steps;
  for (const auto& v : c.verdicts) {
    if (v.family != compile::Verdict::kDeltaProduct || !v.negative) continue;
    if (std::find(layers.begin(), layers.end(), v.layers) == layers.end())
      layers.push_back(v.layers);
    if (std::find(steps.begin(), steps.end(), v.householders) == steps.end())
      steps.push_back(v.householders);
  }
  std::vector<std::string> head = {"Householders"};
  for (const auto& l : layers)
    head.push_back(!l ? "any depth" : fmt::format("{} layer{}", *l, *l == 1 ? "" : "s"));
  figures::Table table(head);
  for (const auto& k : steps) {
    std::vector<std::string> row = {k ? std::to_string(*k) : "any number"};
    for (const auto& l : layers) {
      const auto& v = find(c, compile::Verdict::kDeltaProduct, true, k, l);
      row.push_back(v.answer == compile::Verdict::kNo        ? "no"
                    : v.answer == compile::Verdict::kUnknown ? "?"
                    : v.how == compile::Verdict::kCompiled   ? "yes"
                                                             : "exists");
    }
    table.row(row);
  }
  return table.text();
}

void print_text(const Checked& c) {
  const auto& t = c.type;
  std::cout << fmt::format("{}: {} state{}, {} symbol{}; {}\n", c.subject.title, t.states,
                           t.states == 1 ? "" : "s", t.symbols, t.symbols == 1 ? "" : "s",
                           class_text(t));
  if (!t.levels.empty())
    std::cout << "cascade: " << levels_text(t.levels) << "\n  (" << kWhatALevelIs << ")\n";
  const auto any = std::nullopt;
  std::cout << "\n"
            << sentence("Mamba, GLA (diagonal, [0,1])",
                        find(c, compile::Verdict::kDiagonal, false, any, any))
            << sentence("real diagonal layers, [-1,1],",
                        find(c, compile::Verdict::kDiagonal, true, any, any))
            << sentence("complex diagonal layers",
                        find(c, compile::Verdict::kDiagonalComplex, true, any, any))
            << sentence("DeltaNet and DeltaProduct, [0,1],",
                        find(c, compile::Verdict::kDeltaProduct, false, any, any))
            << sentence("DeltaNet (1 layer, [-1,1])",
                        find(c, compile::Verdict::kDeltaProduct, true, 1, 1))
            << sentence("Titans, theta in [0,1],",
                        find(c, compile::Verdict::kTitans, false, any, any))
            << sentence("Titans (1 layer, theta in [0,2])",
                        find(c, compile::Verdict::kTitans, true, any, 1))
            << sentence("TTT-Linear", find(c, compile::Verdict::kTtt, true, any, any));
  std::cout << "\nDeltaProduct with eigenvalues in [-1,1]:\n" << grid(c);
  std::cout << "\nplans:\n";
  for (const auto& p : c.plans)
    std::cout << fmt::format("  {:<10} {} layer{}, {} Householder{}, range {}, {}: {}\n",
                             compile::name_of(p.kind), p.layers, p.layers == 1 ? "" : "s",
                             p.householders, p.householders == 1 ? "" : "s",
                             p.negative ? "[-1,1]" : "[0,1]",
                             p.exactness == compile::Exactness::kExact
                                 ? "exact"
                                 : fmt::format("drifts, safe for {:.1e} tokens", p.t_safe),
                             p.summary);
  if (c.plans.empty()) std::cout << "  none: a group of this automaton is too large to list\n";
  std::cout
      << "\nyes: a plan compiles, exact at every length; exists: a theorem grants it; ?: no "
         "theorem either way.\n"
         "D1 to D7 are derived in docs/theory.md. Groups need beta = 2 exactly, which a sigmoid\n"
         "reaches only when it saturates.\n";
}

}  // namespace

Action check_automaton(CLI::App& app) {
  auto source = add_automaton_options(app);
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "one JSON object: class, plans and verdicts");
  app.footer(
      "A file is JSON or Graphviz text; docs/automata.md has both with examples. A regex is\n"
      "explained there, too.\n\n"
      "Example:\n  lrnn check --regex '(ab)*' --alphabet ab\n  lrnn check --group S5 --letters "
      "swaps --json");
  return [source, json] {
    const auto checked = check_source(*source);
    if (*json)
      print_json(to_json(checked));
    else
      print_text(checked);
    return kDone;
  };
}

}  // namespace lrnn::cli
