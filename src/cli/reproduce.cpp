#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <thread>

#include "cli/command.h"
#include "cli/find.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/reproduce_report.h"
#include "experiments/files.h"
#include "experiments/runner.h"

namespace lrnn::cli {
namespace {

using experiments::PlannedRun;
using experiments::RunProgress;
using experiments::Suite;

struct ReproduceArguments {
  std::string suite, only;
  experiments::PlanOptions plan;
  int64_t jobs = 0;
  bool list = false, report = false, quiet = false, json = false;
};

// Two of them in one folder would each start what the other has not.
experiments::FileLock lock_suite(const std::string& folder) {
  std::filesystem::create_directories(folder);
  auto lock = experiments::FileLock::take(folder + "/lock");
  if (!lock)
    throw Error(cat("another lrnn reproduce is at work in ", folder),
                "wait for it, stop it, or choose another folder with --out");
  return std::move(*lock);
}

std::string published_text(const experiments::Cell& cell) {
  if (!std::isnan(cell.published.best)) return fmt::format("{:.3f}", cell.published.best);
  if (!std::isnan(cell.published.median)) return fmt::format("{:.3f}", cell.published.median);
  return cell.says;
}

// What would be run, and what is there already.
int list_suites(const ReproduceArguments& a, const std::vector<Suite>& suites) {
  Json all = Json::array();
  for (const auto& suite : suites) {
    if (const auto planned = experiments::plan(suite, a.plan); of_language_models(planned)) {
      all.push_back({{"name", suite.name},
                     {"about", suite.about},
                     {"cells", language_models_json(suite, planned)}});
      if (!a.json)
        std::cout << suite.name << ": " << suite.about << "\n"
                  << language_models_table(suite, planned).text() << missing_data(planned) << "\n";
      continue;
    }
    figures::Table table({"task", "model", "published", "runs", "done", "steps", "config"});
    Json cells = Json::array();
    const auto runs = experiments::plan(suite, a.plan);
    for (size_t i = 0; i < suite.cells.size(); ++i) {
      const auto& cell = suite.cells[i];
      int64_t count = 0, done = 0, steps = 0;
      for (const auto& run : runs)
        if (run.cell == i)
          ++count, done += experiments::finished(run), steps = run.resolved.train.steps;
      table.row({cell.task, cell.model, published_text(cell), std::to_string(count),
                 std::to_string(done), thousands(steps), cell.config});
      cells.push_back({{"task", cell.task},
                       {"model", cell.model},
                       {"config", cell.config},
                       {"runs", count},
                       {"done", done},
                       {"steps", steps}});
    }
    all.push_back({{"name", suite.name}, {"about", suite.about}, {"cells", cells}});
    if (!a.json) std::cout << suite.name << ": " << suite.about << "\n" << table.text() << "\n";
  }
  if (a.json)
    print_json({{"suites", all}, {"warning", reproduce_warning(a.plan)}});
  else if (const auto warning = reproduce_warning(a.plan); !warning.empty())
    std::cout << warning << "\n";
  return kDone;
}

ReproduceReport report_of(const Suite& suite, const ReproduceArguments& a,
                          const std::vector<PlannedRun>& runs,
                          const std::vector<RunProgress>& progress) {
  ReproduceReport out{suite, a.plan, experiments::outcomes(suite, runs)};
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto name = run_name(suite, runs[i], a.plan.lr_grid);
    if (progress[i].state == RunProgress::kFailed)
      out.failures.push_back(name + ": " + progress[i].error);
    for (const auto& sentence : progress[i].warnings)
      out.warnings.push_back(name + ": " + sentence);
  }
  return out;
}

int print_report(const ReproduceArguments& a, const ReproduceReport& report,
                 const std::string& page) {
  for (const auto& sentence : report.warnings) say("warning: " + sentence);
  const int code = report.failures.empty() ? kDone : kNo;
  if (a.json) {
    auto json = reproduce_json(report);
    json["page"] = page;
    return print_json(json), code;
  }
  const auto warning = reproduce_warning(a.plan);
  if (!warning.empty()) std::cout << warning << "\n\n";
  std::cout << reproduce_table(report).text();
  if (!warning.empty()) std::cout << "\n" << warning << "\n";
  std::cout << "score: " << report.suite.score << "; " << reproduce_columns() << "\n";
  for (const auto& failure : report.failures) std::cout << "failed: " << failure << "\n";
  std::cout << "page: " << page << "    (table.md, .csv, .json and curves/ beside it)\n";
  return code;
}

// The tables and the page once more, from what is there.
int report_suite(const ReproduceArguments& a, const Suite& suite) {
  const auto runs = experiments::plan(suite, a.plan);
  const auto folder = experiments::suite_folder(suite, a.plan);
  if (std::none_of(runs.begin(), runs.end(), experiments::finished))
    throw Error(cat("no run of this table is finished in ", folder),
                "--report trains nothing; leave it out to train what is missing");
  const auto lock = lock_suite(folder);
  const auto report = report_of(suite, a, runs, std::vector<RunProgress>(runs.size()));
  return print_report(a, report, write_reproduce_report(report));
}

int run_suite(const ReproduceArguments& a, const Suite& suite, const std::string& device) {
  const auto runs = experiments::plan(suite, a.plan);
  if (const auto missing = missing_data(runs); !missing.empty())
    throw Error("data that these runs read are missing:\n" + missing,
                "--only chooses rows whose data are there; nothing was started");
  const auto lock = lock_suite(experiments::suite_folder(suite, a.plan));
  const auto cores = int64_t(std::max(1u, std::thread::hardware_concurrency()));
  const int64_t jobs = std::min(a.jobs > 0 ? a.jobs : experiments::jobs_that_fit(runs, device),
                                int64_t(runs.size()));
  watch_interrupts();
  RunsProgress progress(suite, runs, jobs, a.quiet);
  if (!a.quiet)
    say(fmt::format("{}: {} cells, {} runs, {} at once, in {}{}", suite.name, suite.cells.size(),
                    runs.size(), jobs, experiments::suite_folder(suite, a.plan),
                    reproduce_warning(a.plan).empty() ? "" : "\n" + reproduce_warning(a.plan)));
  const auto all =
      experiments::run_all(runs, {.device = device,
                                  .jobs = jobs,
                                  .threads = std::max<int64_t>(1, cores / jobs),
                                  .progress =
                                      [&](const std::vector<RunProgress>& now, bool finished) {
                                        progress.show(now, finished);
                                        // What is known so far survives whatever happens to this
                                        // process.
                                        if (finished)
                                          write_reproduce_report(report_of(suite, a, runs, now));
                                      },
                                  .interrupted = interrupted});
  progress.clear();
  const auto report = report_of(suite, a, runs, all);
  const auto page = write_reproduce_report(report);
  if (interrupted()) {
    say("interrupted; everything is saved, and the same command goes on from here");
    return kInterrupted;
  }
  return print_report(a, report, page);
}

}  // namespace

Action reproduce(CLI::App& app) {
  auto a = std::make_shared<ReproduceArguments>();
  a->plan.out = "runs/reproduce";
  app.add_option("SUITE", a->suite, "chomsky, groups, …: see --list");
  app.add_option("KEYS", a->plan.keys, "key=value pairs for every run (marked in the results)");
  app.add_flag("--list", a->list, "show the cells, their runs and which are done; run nothing");
  app.add_flag("--report", a->report,
               "tables and page again from the runs that are done; run nothing");
  app.add_option("--only", a->only, "tasks, models and ranges, such as parity,mamba,[-1,1]")
      ->type_name("WORDS");
  add_number(app, "--seeds", a->plan.seeds, "runs per cell (default: 3)");
  add_number(app, "--scale", a->plan.scale, "shorten to this part of the steps (marked)")
      ->type_name("X");
  add_number(app, "--jobs", a->jobs, "runs at once (default auto: what cores and memory allow)",
             Least::kZero)
      ->transform([](const std::string& text) { return text == "auto" ? std::string("0") : text; });
  app.add_flag("--lr-grid", a->plan.lr_grid, "try 1e-2 1e-3 5e-4 1e-4, choose by the median");
  app.add_option("--out", a->plan.out, "where runs and reports go (default: runs/reproduce)")
      ->type_name("DIR");
  app.add_flag("--quiet", a->quiet, "no progress, only the result");
  app.add_flag("--json", a->json, "one JSON object");
  const auto device = add_device(app);
  app.footer(
      "Trains what a published table is made of and prints ours beside it. Finished runs are "
      "kept;\n"
      "after Ctrl-C, or worse, the same command goes on where it was. Exit code 1: a run "
      "failed.\n\n"
      "Example:\n"
      "  lrnn reproduce --list\n"
      "  lrnn reproduce chomsky --only parity,delta_net --scale 0.05 --jobs 2");
  return [a, device] {
    a->plan.configs = configs_folder();
    const auto suites = experiments::read_suites(a->plan.configs);
    if (a->suite.empty() && !a->list)
      throw Error("which published table? None was named", "`lrnn reproduce --list` shows them");
    auto chosen = suites;
    if (!a->suite.empty()) chosen = {experiments::find_suite(suites, a->suite)};
    if (!a->only.empty())
      for (auto& suite : chosen) suite = experiments::only(suite, a->only);
    if (a->list) return list_suites(*a, chosen);
    if (a->report) return report_suite(*a, chosen.front());
    require_device(*device);
    return run_suite(*a, chosen.front(), *device);
  };
}

}  // namespace lrnn::cli
