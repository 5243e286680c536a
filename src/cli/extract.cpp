#include "experiments/extract.h"

#include <fmt/format.h>

#include <iostream>

#include "automata/read/text_format.h"
#include "cli/command.h"
#include "cli/find.h"
#include "cli/options.h"
#include "cli/output.h"
#include "figures/table.h"

namespace lrnn::cli {
namespace {

using automata::Ended;
using experiments::Extracted;

struct ExtractArguments {
  std::string run, out;
  automata::LearnOptions learn;
  int64_t longest = 0, seed = 1;
  bool json = false;
};

std::string why(const Extracted& e, const automata::LearnOptions& o) {
  switch (e.learnt.ended) {
    case Ended::kStates: return cat("it has more than ", o.states, " states (--states)");
    case Ended::kWords:
      return cat("the budget of ", thousands(o.words), " words is used up (--words)");
    case Ended::kSeconds: return cat("the ", o.seconds, " seconds are over (--seconds)");
    case Ended::kNoBetter: return "more states come no closer to what the model says";
    case Ended::kAgreed: break;
  }
  return {};
}

const char* word_for(Ended ended) {
  switch (ended) {
    case Ended::kStates: return "states";
    case Ended::kWords: return "words";
    case Ended::kSeconds: return "seconds";
    case Ended::kNoBetter: return "no better";
    case Ended::kAgreed: break;
  }
  return "agreed";
}

struct Parting {
  std::string word, model, automaton;
};

Parting parting(const Extracted& e, const tasks::Task& task) {
  const auto& d = *e.learnt.difference;
  const auto& machine = e.learnt.machine;
  return {machine.automaton.text(d.word), experiments::answer_name(task, d.answers.back()),
          experiments::answer_name(task, machine.answer_to(d.word))};
}

Json extract_json(const Extracted& e, const experiments::Run& run, const std::string& file) {
  const auto& l = e.learnt;
  Json rows = Json::array(), first = nullptr, own = nullptr;
  for (const auto& row : l.agreement)
    rows.push_back({{"length", row.length},
                    {"words", row.words},
                    {"equal", row.equal},
                    {"low", row.low},
                    {"high", row.high}});
  if (l.difference) {
    const auto p = parting(e, *run.task);
    first = {{"length", l.difference->word.size()},
             {"word", p.word},
             {"model", p.model},
             {"automaton", p.automaton}};
  }
  if (e.own)
    own = {
        {"states", e.own->automaton.states},
        {"same", !e.parts},
        {"first_difference", e.parts ? Json(l.machine.automaton.text(*e.parts)) : Json(nullptr)}};
  return {{"run", run.folder},
          {"damaged", run.damaged},
          {"automaton", file},
          {"agreed", e.agreed()},
          {"ended", word_for(l.ended)},
          {"states", e.automaton.states},
          {"symbols", e.automaton.symbols},
          {"asked", l.asked},
          {"longest", l.longest},
          {"agreement", rows},
          {"first_difference", first},
          {"task", own},
          {"seconds", l.seconds}};
}

void print_extracted(const Extracted& e, const experiments::Run& run, const ExtractArguments& a) {
  const auto& l = e.learnt;
  std::cout << fmt::format("{} states, {} symbols, learnt from {} words in {}\n",
                           e.automaton.states, e.automaton.symbols, thousands(l.asked),
                           duration(l.seconds));
  if (e.own && !e.parts)
    std::cout << "it is the task's own automaton\n";
  else if (e.own)
    std::cout << fmt::format(
        "the task's own automaton has {} states; it answers '{}' with {}, and this one with {}\n",
        e.own->automaton.states, l.machine.automaton.text(*e.parts),
        experiments::answer_name(*run.task, e.own->answer_to(*e.parts)),
        experiments::answer_name(*run.task, l.machine.answer_to(*e.parts)));
  figures::Table table({"length", "words", "equal", "agreement, 95 %"});
  for (const auto& row : l.agreement)
    table.row({std::to_string(row.length), std::to_string(row.words), std::to_string(row.equal),
               fmt::format("{:.3f} to {:.3f}", row.low, row.high)});
  std::cout << table.text();
  if (!e.agreed()) std::cout << "this is the best automaton found: " << why(e, a.learn) << "\n";
  if (l.difference) {
    const auto p = parting(e, *run.task);
    std::cout << fmt::format("they part at length {}: {} -> the model says {}, the automaton {}\n",
                             l.difference->word.size(), p.word, p.model, p.automaton);
  } else {
    std::cout << fmt::format("no difference was found up to {} letters\n", thousands(l.longest));
  }
  std::cout << fmt::format("automaton: {}\nnext: lrnn compile --automaton {} -o DIR\n", a.out,
                           a.out);
}

int extract(ExtractArguments a) {
  auto run = open_run(a.run);
  a.learn.longest = a.longest ? a.longest : experiments::usual_longest(*run.task);
  a.learn.seed = uint64_t(a.seed);
  const auto e = experiments::extract(run, a.learn);
  write_file(a.out, automata::to_json(e.automaton) + "\n");
  a.json ? print_json(extract_json(e, run, a.out)) : print_extracted(e, run, a);
  return e.agreed() ? kDone : kNo;
}

}  // namespace

Action extract_automaton(CLI::App& app) {
  auto a = std::make_shared<ExtractArguments>();
  add_run(app, a->run, "a folder that `lrnn train` or `lrnn compile` wrote");
  app.add_option("-o,--out", a->out, "the automaton, for `lrnn compile --automaton`")
      ->required()
      ->type_name("FILE");
  add_number(app, "--states", a->learn.states, "at most so many states (default: 500)",
             Least::kAboveZero);
  add_number(app, "--seconds", a->learn.seconds, "at most so long (default: 600)",
             Least::kAboveZero);
  add_number(app, "--words", a->learn.words, "ask about at most so many words (default: 10000000)",
             Least::kAboveZero);
  add_number(app, "--longest", a->longest,
             "letters of the longest words that are tried (default: 10 times the longest it was "
             "trained on)",
             Least::kAboveZero);
  add_number(app, "--seed", a->seed, "of the words", Least::kZero);
  app.add_flag("--json", a->json, "one JSON object");
  app.footer(
      "Asks the model about words until an automaton gives the same answers, and says on fresh "
      "words\n"
      "of every length how often they agree. States are named by what the model says in them. "
      "Exit\n"
      "code 1 when a difference is left or a budget ends: the file then has the best automaton "
      "found.\n\nExample:\n"
      "  lrnn extract runs/parity -o parity.json\n"
      "  lrnn compile --automaton parity.json -o runs/exact\n"
      "  lrnn verify runs/exact");
  return [a] { return extract(*a); };
}

}  // namespace lrnn::cli
