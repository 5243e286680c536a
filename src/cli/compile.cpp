#include "compile/compile.h"

#include <fmt/format.h>

#include <cmath>
#include <iostream>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "experiments/compiled.h"

namespace lrnn::cli {
namespace {

struct CompileArguments {
  std::string out, range = "-11", profile = "native";
  int64_t householders = 0, layers = 0;
  bool states = false, gate = false, drift = false, json = false;
};

int compile_to_folder(const CompileArguments& a, const automata::Source& source) {
  compile::Options options;
  if (a.householders) options.limits.householders = a.householders;
  if (a.layers) options.limits.layers = a.layers;
  options.limits.negative = a.range == "-11";
  options.limits.drift = a.drift;
  options.profile = compile::profile_named(a.profile);
  options.gate = a.gate;
  auto subject = automata::load(source);
  if (a.states) subject.recogniser = false;
  const auto c = compile::compile(subject, options);
  const auto margin = compile::margin_of(*c);
  experiments::write_compiled(a.out, *c, margin, source);
  const auto& net = c->built->network;
  const auto parameters = compile::model_of(c->weights)->parameter_count();
  const bool exact = !std::isfinite(c->t_safe);
  const Json about{
      {"folder", a.out},
      {"title", c->subject.title},
      {"states", c->subject.automaton.states},
      {"symbols", c->subject.automaton.symbols},
      {"recogniser", c->subject.recogniser},
      {"plan", compile::name_of(c->plan.kind)},
      {"summary", c->plan.summary},
      {"layers", c->weights.config.layers},
      {"heads", net.heads()},
      {"householders", net.householders()},
      {"key_dim", net.key_dim()},
      {"value_dim", net.value_dim()},
      {"width", c->weights.config.width},
      {"hidden", c->weights.config.mlp.hidden},
      {"parameters", parameters},
      {"profile", a.profile},
      {"bos", c->weights.bos},
      {"exactness", exact ? "exact" : "drift"},
      {"t_safe", exact ? Json(nullptr) : Json(c->t_safe)},
      {"margin", {{"weight", margin.weight}, {"length", margin.length}, {"limit", margin.limit}}}};
  if (a.json) return print_json(about), kDone;
  std::cout << fmt::format("{}: {} states, {} symbols; answers {}\nplan: {}{}\n", c->subject.title,
                           c->subject.automaton.states, c->subject.automaton.symbols,
                           c->subject.recogniser ? "accept or reject" : "with the state",
                           compile::name_of(c->plan.kind),
                           c->plan.summary.empty() ? "" : ", " + c->plan.summary)
            << (c->plan.has_levels() ? cat("  (", automata::kWhatALevelIs, ")\n") : "")
            << fmt::format(
                   "layers {}, heads {}, Householders {}, state {} x {}, width {}, hidden {}, "
                   "parameters {}\n",
                   c->weights.config.layers, net.heads(), net.householders(), net.key_dim(),
                   net.value_dim(), c->weights.config.width, c->weights.config.mlp.hidden,
                   thousands(parameters));
  if (exact)
    std::cout << "exactness: exact, T_safe: every length\n";
  else
    std::cout << fmt::format("exactness: drift, T_safe: {:.2g} tokens\n", c->t_safe);
  std::cout << margin_text(margin) << "\n";
  std::cout << fmt::format("folder: {}\nnext: lrnn verify {}    lrnn run {}\n", a.out, a.out,
                           a.out);
  return kDone;
}

}  // namespace

Action compile_automaton(CLI::App& app) {
  const auto source = add_automaton_options(app);
  auto a = std::make_shared<CompileArguments>();
  app.add_option("-o,--out", a->out, "the folder to write")->required()->type_name("DIR");
  app.add_flag("--states", a->states, "answer with the state even if there are accepting ones");
  add_number(app, "--householders", a->householders, "at most so many reflections per token",
             Least::kAboveZero);
  add_number(app, "--layers", a->layers, "at most so many layers", Least::kAboveZero)
      ->type_name("L");
  app.add_option("--range", a->range, "eigenvalues in [0, 1] or in [-1, 1] (default)")
      ->check(CLI::IsMember({"01", "-11"}));
  app.add_flag("--gate", a->gate, "with a forget gate, which stays open");
  app.add_flag("--drift", a->drift, "also plans that are right up to some length only");
  app.add_option("--profile", a->profile, "native (default), native-bos, fla or fp64")
      ->type_name("NAME");
  app.add_flag("--json", a->json, "one JSON object");
  app.footer(
      "Writes a run folder with the weights of a model that follows the automaton. Exit code 2 "
      "when\n"
      "no plan fits the limits; the message says which would. The model says accept or reject for "
      "a\n"
      "regex and for an automaton with accepting states, and otherwise the state.\n\nExample:\n"
      "  lrnn compile --regex '(ab|ba)*' --alphabet ab -o runs/abba\n"
      "  echo abbaab | lrnn run runs/abba");
  return [a, source] { return compile_to_folder(*a, *source); };
}

}  // namespace lrnn::cli
