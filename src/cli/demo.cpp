#include "experiments/demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "cli/command.h"
#include "cli/configs_folder.h"
#include "cli/demo_page.h"
#include "cli/interrupt.h"
#include "cli/open_run.h"
#include "cli/output.h"
#include "cli/progress.h"

namespace lrnn::cli {
namespace {

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
  app.add_option("--seed", a->seed, "of weights and data (default: that of the configs)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
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
