#include "experiments/demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/figures.h"
#include "cli/find.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "experiments/identity.h"
#include "figures/page.h"
#include "figures/table.h"

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

// What theory predicts, on request with its reason, beside what was measured.
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

// The same with pictures, as one self-contained HTML page.
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

struct DemoArguments {
  std::string out = "runs/demo";
  int64_t seed = -1;
  bool json = false, quiet = false;
};

std::string line(const std::vector<experiments::RunProgress>& all, double seconds) {
  double done = 0, steps = 0;
  std::string parts;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& now = all[i].now;
    done += double(now.step), steps += double(now.steps);
    if (now.step > 0 && now.step < now.steps)
      parts += fmt::format("  {} {:.2f}", experiments::demo_cases()[i].config, now.loss);
  }
  const double left = done > 0 ? seconds * (steps - done) / done : -1;
  return fmt::format("{} {:.0f}/{:.0f} steps  {} left  loss:{}", filled_bar(done / steps, 20), done,
                     steps, duration(left), parts);
}

Json to_json(const std::vector<experiments::DemoRow>& rows, const std::string& page,
             double seconds) {
  Json list = Json::array();
  for (const auto& row : rows)
    list.push_back({{"task", row.about.task},
                    {"model", row.about.model},
                    {"predicted", row.about.can ? "generalises" : "fails"},
                    {"theory", row.about.theory},
                    {"inside", row.inside},
                    {"beyond", row.beyond},
                    {"as_predicted", row.as_predicted()},
                    {"run", row.run.folder}});
  return {{"rows", list}, {"page", page}, {"seconds", seconds}};
}

int run_demo(const DemoArguments& a) {
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  ProgressBar bar(a.quiet);
  watch_interrupts();
  if (!a.quiet) say("training five small models in " + a.out);
  const auto rows =
      experiments::run_demo({.configs = configs_folder(),
                             .out = a.out,
                             .seed = a.seed,
                             .progress =
                                 [&](const std::vector<experiments::RunProgress>& all) {
                                   if (bar.bar())
                                     bar.show(line(all, passed()));
                                   else if (bar.due(false))
                                     say(line(all, passed()));
                                 },
                             .interrupted = interrupted});
  bar.clear();
  if (rows.empty()) return say("interrupted"), kInterrupted;
  for (const auto& row : rows) warn_of_damage(row.run);

  const std::string page = a.out + "/demo.html";
  write_file(page, demo_page(rows));
  const auto json = to_json(rows, page, passed());
  write_file(a.out + "/demo.json", json.dump(2) + "\n");
  if (a.json) return print_json(json), kDone;
  std::cout << demo_table(rows, false).text()
            << "scores: parity, scaled accuracy (0 is guessing); addition, share of sequences all "
               "right\n\n";
  for (const auto& row : rows)
    if (!row.as_predicted())
      std::cout << fmt::format("{} on {} did not do as theory says with this seed: {}\n",
                               row.about.model, row.about.task,
                               row.about.can ? "training does not always find what exists"
                                             : "look at it with lrnn eval " + row.run.folder);
  std::cout << fmt::format("page: {}    ({})\n", page, duration(passed()));
  std::cout << "next: "
            << (rows[1].as_predicted()
                    ? "lrnn spectrum " + rows[1].run.folder + " shows the eigenvalue -1 it found\n"
                    : std::string("lrnn demo --seed 2 tries other weights and data\n"));
  return kDone;
}

}  // namespace

Action demo(CLI::App& app) {
  auto a = std::make_shared<DemoArguments>();
  app.add_option("--out", a->out, "where the runs and the page go (default: runs/demo)")
      ->type_name("DIR");
  add_number(app, "--seed", a->seed, "of weights and data (default: that of the configs)",
             Least::kZero);
  app.add_flag("--quiet", a->quiet, "no progress, only the result");
  app.add_flag("--json", a->json, "one JSON object");
  app.footer(
      "Trains DeltaNet with eigenvalues in [0,1] and in [-1,1] on parity, with [0,1] also on "
      "short\n"
      "words, and DeltaProduct with one and two reflections per token on addition modulo 3, then\n"
      "tests them far beyond the lengths they were trained on. About a minute on two cores; "
      "writes\n"
      "DIR/demo.html.\n\n"
      "Example:\n  lrnn demo --seed 3 --out runs/demo3");
  return [a] { return run_demo(*a); };
}

}  // namespace lrnn::cli
