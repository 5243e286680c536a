#include "cli/demo_page.h"

#include <fmt/format.h>

#include "cli/length_chart.h"
#include "cli/output.h"
#include "cli/spectrum_figure.h"
#include "experiments/identity.h"
#include "figures/page.h"

namespace lrnn::cli {
namespace {

using experiments::DemoRow;
using lrnn::tasks::Split;

bool prefixes(const DemoRow& row) { return row.run.task->score() == lrnn::tasks::Score::kPrefix; }

std::string lengths(const DemoRow& row, Split split) {
  const Range range = row.run.task->length(split);
  return range.lo == range.hi ? fmt::format("{}", range.hi)
                              : fmt::format("{}–{}", range.lo, range.hi);
}

// The curves of every model of one task.
std::string demo_chart(const std::vector<DemoRow>& rows, const std::string& task) {
  std::vector<LengthCurve> curves;
  const DemoRow* one = nullptr;
  for (const auto& row : rows) {
    if (row.about.task != task) continue;
    one = &row;
    curves.push_back({row.about.model, &row.bins, prefixes(row) ? 0 : row.run.task->chance(),
                      figures::style_of(experiments::identity(row.run.config.model).key),
                      row.run.task.get()});
  }
  std::string title = fmt::format(
      "{}: {}", task, prefixes(*one) ? "right at every position so far" : "accuracy by length");
  title[0] = char(std::toupper(title[0]));
  return length_chart(title, prefixes(*one), curves);
}

}  // namespace

figures::Table demo_table(const std::vector<DemoRow>& rows, bool why) {
  figures::Table table({"task", "model", "theory", "in training", "beyond", "agrees"});
  for (const auto& row : rows) {
    const std::string says = row.about.can ? "works" : "fails";
    table.row({row.about.task, row.about.model, why ? says + ": " + row.about.theory : says,
               fmt::format("{} ({})", decimals(row.inside, 3), lengths(row, Split::kTrain)),
               fmt::format("{} ({})", decimals(row.beyond, 3), lengths(row, Split::kEval)),
               row.as_predicted() ? "yes" : "NO"});
  }
  return table;
}

std::string demo_page(const std::vector<DemoRow>& rows) {
  figures::Page page("Why the eigenvalues of a linear RNN matter");
  page.paragraph(
      "A linear RNN multiplies its state by a matrix at every token. What it can keep count of "
      "depends on the eigenvalues of that matrix. If they all lie between 0 and 1, nothing can "
      "ever "
      "flip back and forth, and even parity, the question whether a sequence holds an odd number "
      "of ones, cannot be carried on for ever. With an eigenvalue of -1 each one flips a sign, "
      "and parity is solved at every length.");
  page.paragraph(
      "The same holds one step further. A single reflection per token has only real eigenvalues, "
      "so one layer of them cannot count modulo 3. The product of two reflections is a rotation, "
      "and a rotation by a third of a turn counts modulo 3 exactly. This is DeltaProduct with two "
      "Householder factors.");
  page.html(demo_table(rows, true).html());
  page.note(
      "Parity is scored by scaled accuracy: 0 is guessing, 1 is perfect. Addition is scored by the "
      "share of sequences whose every answer is right. All numbers are of the last training step.");
  page.figure(
      demo_chart(rows, rows.front().about.task),
      "The twins differ in one number, the factor in front of the sigmoid that makes beta.");
  page.figure(demo_chart(rows, rows[2].about.task),
              "Words of up to 10, ten times as many steps: [0,1] learns the lengths it sees and "
              "guesses beyond. Full-size runs show the same for lengths up to 40.");
  page.figure(demo_chart(rows, rows.back().about.task),
              "One reflection per token against two, everything else equal.");
  page.heading("The eigenvalues they learned");
  for (const auto& row : rows)
    page.figure(spectrum_figure({named(fmt::format("{}, {}", row.about.model, row.about.task),
                                       row.run, row.spectrum)}),
                row.about.theory);
  page.heading("What to try next");
  page.paragraph(fmt::format(
      "lrnn eval {0} --lengths 3:2048 tests the solved parity model on far longer sequences, and "
      "lrnn demo --seed 7 repeats the page with other weights and data.",
      rows[1].run.folder));
  page.note(fmt::format("Made by lrnn {}, seed {}.", LRNN_VERSION, rows.front().run.config.seed));
  return page.str();
}

}  // namespace lrnn::cli
