#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <limits>
#include <optional>

#include "cli/command.h"
#include "cli/find.h"
#include "cli/options.h"
#include "cli/output.h"
#include "compile/certificate.h"
#include "experiments/compiled.h"

namespace lrnn::cli {
namespace {

struct VerifyArguments {
  std::string run;
  double tokens = 1e6;
  int64_t seed = 1;
  bool json = false;
};

constexpr int64_t kLargeModel = 200000;  // weights: the margin is tried in fewer directions

struct Verified {
  automata::Subject subject;
  std::optional<compile::Certificate> certificate;
  std::string exactness;  // exact or drift; empty: nothing is proved
  bool trained = false;   // otherwise compiled, and compared with an automaton that was named
  double t_safe = std::numeric_limits<double>::infinity();
  compile::LongRun run;
  compile::MarginTrial tried;  // of the certificate's margin
  // Of models that drift.
  double t_safe_measured() const { return std::isfinite(t_safe) ? run.measured_t_safe() : t_safe; }
  bool right() const {
    return run.wrong == 0 && tried.wrong == 0 && (!certificate || certificate->holds());
  }
};

bool named(const automata::Source& s) {
  return s.has_regex || !s.file.empty() || !s.group.empty() || !s.example.empty();
}

// What a trained model is compared with: the automaton that is named, or its task's own.
compile::Tokens trained(const experiments::Run& run, const automata::Source& source,
                        automata::Subject& subject) {
  if (named(source)) return experiments::tokens_of(*run.task, subject = automata::load(source));
  const auto own = run.task->followed();
  const auto name = run.config.task.text("name");
  if (!own)
    throw Error(cat("the task ", name, " has no automaton of its own"),
                "name one to compare with: --regex, --automaton, --group or --example");
  subject = {name == "automaton" ? own->title : "the task " + name, own->automaton, false};
  return experiments::tokens_of(*run.task, *own);
}

Verified verify(experiments::Run& run, const VerifyArguments& a, const automata::Source& source) {
  Verified out;
  compile::Tokens read;
  int64_t tokens = int64_t(a.tokens);
  if (experiments::is_compiled(a.run) && !named(source) && run.step == 0) {
    const auto c = experiments::recompile(run);
    out.subject = c->subject;
    out.certificate = compile::certify(*c, *run.model);
    out.exactness = std::isfinite(c->t_safe) ? "drift" : "exact";
    out.t_safe = c->t_safe;
    if (double(tokens) > c->t_safe) tokens = int64_t(c->t_safe);
    read = experiments::tokens_of(*run.task, out.subject);
  } else {
    out.trained = !experiments::is_compiled(a.run) || run.step > 0;
    read = trained(run, source, out.subject);
  }
  if (out.certificate && out.certificate->margin.weight > 0) {
    const auto& margin = out.certificate->margin;
    const bool large = run.model->parameter_count() > kLargeModel;
    out.tried = compile::try_margin(*run.model, out.subject.automaton, read,
                                    {.weight = margin.weight,
                                     .length = margin.length,
                                     .random = large ? 1 : 8,
                                     .seed = uint64_t(a.seed)});
  }
  out.run = compile::long_run(*run.model, out.subject.automaton, read,
                              {tokens, uint64_t(a.seed), !out.certificate});
  return out;
}

std::string letters(const automata::Automaton& a, const compile::LongRun::Mistake& m) {
  return (m.position > int64_t(m.letters.size()) ? "… " : "") + a.text(m.letters);
}

Json finite(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }

Json to_json(const compile::Margin& m, const compile::MarginTrial& tried) {
  return {{"weight", m.weight},
          {"length", m.length},
          {"limit", m.limit},
          {"directions", tried.directions},
          {"wrong", tried.wrong}};
}

Json to_json(const Verified& v, const experiments::Run& run) {
  Json parts = Json::array(), kinds = Json::array();
  if (v.certificate)
    for (const auto& p : v.certificate->parts)
      parts.push_back({{"part", p.name}, {"cases", p.cases}, {"wrong", p.wrong}});
  for (const auto& [name, tokens] : v.run.kinds)
    kinds.push_back({{"words", name}, {"tokens", tokens}});
  Json first = nullptr;
  if (const auto& m = v.run.first)
    first = {{"kind", m->word},
             {"length", m->position},
             {"word", letters(v.subject.automaton, *m)},
             {"want", run.task->word(m->want)},
             {"got", run.task->word(m->got)}};
  return {{"run", run.folder},
          {"damaged", run.damaged},
          {"title", v.subject.title},
          {"right", v.right()},
          {"exactness", v.exactness.empty() ? Json(nullptr) : Json(v.exactness)},
          {"t_safe", finite(std::min(v.t_safe, v.t_safe_measured()))},
          {"t_safe_planned", finite(v.t_safe)},
          {"t_safe_measured", finite(v.t_safe_measured())},
          {"certificate", v.certificate ? Json{{"holds", v.certificate->holds()},
                                               {"all_lengths", v.certificate->exact},
                                               {"margin", to_json(v.certificate->margin, v.tried)},
                                               {"parts", parts}}
                                        : Json(nullptr)},
          {"tokens", v.run.tokens},
          {"words", v.run.words},
          {"longest", v.run.longest},
          {"wrong", v.run.wrong},
          {"margin", v.run.margin},
          {"first_wrong", first},
          {"kinds", kinds}};
}

void print(const Verified& v, const experiments::Run& run) {
  std::cout << v.subject.title << "\n";
  if (v.certificate) {
    for (const auto& p : v.certificate->parts)
      if (p.cases > 0)
        std::cout << fmt::format("  {:<16} {:>9} cases  {}\n", p.name, thousands(p.cases),
                                 p.wrong.empty() ? "right" : p.wrong);
    if (v.certificate->holds())
      std::cout << (v.certificate->exact
                        ? "certificate: right on every word of every length\n"
                        : "certificate: every part is right; lengths are limited by drift\n");
    else
      std::cout << "certificate: NO, " << v.certificate->first_wrong() << "\n";
  }
  if (v.certificate && v.certificate->holds()) {
    std::cout << margin_text(v.certificate->margin);
    if (v.tried.directions > 0)
      std::cout << fmt::format(
          "\n  bounded part by part; tried in {} random directions and the worst "
          "one: {} wrong",
          v.tried.directions - 1, v.tried.wrong);
    std::cout << "\n";
  }
  if (v.exactness.empty())
    std::cout << (v.trained ? "a trained model: nothing is proved, words are tried"
                            : "compared with the automaton named: nothing is proved, words are "
                              "tried");
  else
    std::cout << fmt::format("exactness: {}", v.exactness);
  if (std::isfinite(v.t_safe)) {
    const double measured = v.t_safe_measured();
    std::cout << fmt::format(
        ", T_safe {:.2g} tokens (planned {:.2g}; the margin went from {:.4g} to {:.4g} in {} "
        "tokens",
        std::min(v.t_safe, measured), v.t_safe, v.run.first_margin, v.run.last_margin,
        thousands(v.run.longest));
    std::cout << (std::isfinite(measured)
                      ? fmt::format(", at which pace {:.2g} use it up)", measured)
                      : ")");
  }
  std::cout << fmt::format(
      "\n{} tokens in {} words, the longest {}: {} wrong, least margin {:.3g}\n",
      thousands(v.run.tokens), thousands(v.run.words), thousands(v.run.longest),
      thousands(v.run.wrong), v.run.margin);
  if (const auto& m = v.run.first)
    std::cout << fmt::format("first wrong at length {} ({}): {} -> {}, not {}\n", m->position,
                             m->word, letters(v.subject.automaton, *m), run.task->word(m->got),
                             run.task->word(m->want));
}

}  // namespace

Action verify_model(CLI::App& app) {
  auto a = std::make_shared<VerifyArguments>();
  add_run(app, a->run, "a folder that `lrnn compile` or `lrnn train` wrote");
  add_number(app, "--tokens", a->tokens, "length of the longest word (default: 1e6)",
             Least::kAboveZero);
  add_number(app, "--seed", a->seed, "of the random words", Least::kZero);
  const auto source = add_automaton_options(app);
  app.add_flag("--json", a->json, "one JSON object");
  app.footer(
      "Checks a compiled model part by part, which is a proof for words of every length where it "
      "is\n"
      "exact, says how far its weights may move and tries that, and then runs long words. A "
      "trained\n"
      "model is compared with its task's automaton, or with the one that is named, on many words "
      "of\n"
      "every length, up to the first length that is wrong.\n"
      "Exit code 1 when something is wrong.\n\nExample:\n  lrnn verify runs/abba --tokens 1e6");
  return [a, source] {
    auto run = open_run(a->run);
    const auto v = verify(run, *a, *source);
    a->json ? print_json(to_json(v, run)) : print(v, run);
    return v.right() ? kDone : kNo;
  };
}

}  // namespace lrnn::cli
