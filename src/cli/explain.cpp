#include "cli/explain.h"

#include <iostream>

#include "cli/command.h"
#include "cli/find.h"
#include "cli/options.h"
#include "cli/output.h"
#include "experiments/compiled.h"
#include "experiments/extract.h"

namespace lrnn::cli {
namespace {

struct ExplainArguments {
  std::string run, out;
  double seconds = 120;
  bool drift = false, json = false;
};

int explain(const ExplainArguments& a, const automata::Source& source) {
  std::string file = a.out, page;
  std::vector<std::string> damaged;
  if (!a.run.empty()) {
    auto run = open_run(a.run);
    damaged = run.damaged;
    if (experiments::is_compiled(a.run) && run.step == 0) {
      const auto c = experiments::recompile(run);
      page = explain_page(*c, *run.model);
    } else {
      automata::LearnOptions options;
      options.seconds = a.seconds, options.longest = experiments::usual_longest(*run.task);
      page = explain_trained_page(run, options);
    }
    if (file.empty()) file = a.run + "/explain.html";
  } else {
    compile::Options options;
    options.limits.drift = a.drift;
    const auto c = compile::compile(automata::load(source), options);
    page = explain_page(*c, *compile::model_of(c->weights));
    if (file.empty()) file = "explain.html";
  }
  write_file(file, page);
  if (a.json)
    print_json({{"page", file}, {"damaged", damaged}});
  else
    std::cout << "page: " << file << "\n";
  return kDone;
}

}  // namespace

Action explain_model(CLI::App& app) {
  auto a = std::make_shared<ExplainArguments>();
  app.add_option("RUN", a->run, "a folder that `lrnn compile` or `lrnn train` wrote");
  const auto source = add_automaton_options(app);
  app.add_option("-o,--out", a->out, "the page (default: RUN/explain.html or explain.html)")
      ->type_name("FILE");
  add_number(app, "--seconds", a->seconds,
             "of a trained model: learn at most so long (default: 120)", Least::kAboveZero);
  app.add_flag("--drift", a->drift, "also plans that are right up to some length only");
  app.add_flag("--json", a->json, "one JSON object");
  app.footer(
      "Writes one HTML page without outside parts: the automaton (accepting states have double\n"
      "circles), a word to step through with the state matrices of the model after each letter, "
      "the\n"
      "cascade, and the matrices of each head with their eigenvalues. Of a trained model: the "
      "automaton\n"
      "that it follows, learnt by asking it, beside that of its task.\n\nExample:\n"
      "  lrnn explain --regex '(ab|ba)*' --alphabet ab -o page.html");
  return [a, source] { return explain(*a, *source); };
}

}  // namespace lrnn::cli
