#include <fmt/format.h>

#include "cli/explain.h"
#include "experiments/extract.h"
#include "figures/draw.h"
#include "figures/page.h"

// A trained model has no plan to show. What it follows is learnt by asking it, and drawn beside
// what its task follows.
namespace lrnn::cli {
namespace {

using experiments::Extracted;

figures::LineChart agreement_chart(const Extracted& e) {
  figures::LineChart out;
  out.title = "agreement by length";
  out.x_label = "letters", out.y_label = "words answered alike throughout";
  out.y = {0, 1}, out.log_x = true;
  figures::Series series{"model and automaton", {}};
  for (const auto& row : e.learnt.agreement)
    series.points.push_back(
        {double(row.length), double(row.equal) / double(row.words), row.low, row.high});
  out.series = {series};
  return out;
}

}  // namespace

std::string explain_trained_page(experiments::Run& run, const automata::LearnOptions& options) {
  const auto e = experiments::extract(run, options);
  const auto& l = e.learnt;
  const auto& task = *run.task;
  const auto said = [&](int64_t answer) { return experiments::answer_name(task, answer); };
  figures::Page page(fmt::format("What {} follows", run.folder));
  page.paragraph(fmt::format(
      "The model was trained on the task {} for {} steps. It was asked about {} words, up to {} "
      "letters long; the automaton below is learnt from its answers. {}",
      run.config.task.text("name"), run.step, l.asked, l.longest,
      e.agreed() ? "No word was found on which the two differ."
                 : "It is the best one found: model and automaton differ on some words."));
  show_automaton(page, e.automaton, {"the automaton of the model", "What the model follows"});
  if (e.own) {
    page.heading("The task's own automaton");
    if (!e.parts)
      page.paragraph("It is the same: the model has learnt its task, as far as words were tried.");
    else
      page.paragraph(fmt::format(
          "It is another one, and the shortest word that shows it is \"{}\": the task's automaton "
          "answers {}, the model's {}.",
          l.machine.automaton.text(*e.parts), said(e.own->answer_to(*e.parts)),
          said(l.machine.answer_to(*e.parts))));
    auto own = *e.own;
    own.automaton.symbol_names = e.automaton.symbol_names;
    show_automaton(page, automata::named(own, said),
                   {"the automaton of the task", "What the task follows", "", "own-"});
  }
  if (!l.agreement.empty()) {
    page.heading("How far they agree");
    page.figure(figures::draw(agreement_chart(e)),
                "Words that had no part in learning; the band holds the true share 95 times in "
                "100.");
  }
  if (l.difference)
    page.paragraph(fmt::format(
        "They part at {} letters: after {} the model says {}, the automaton {}.",
        l.difference->word.size(), l.machine.automaton.text(l.difference->word),
        said(l.difference->answers.back()), said(l.machine.answer_to(l.difference->word))));
  return page.str();
}

}  // namespace lrnn::cli
