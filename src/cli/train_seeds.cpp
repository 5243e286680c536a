#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <thread>

#include "cli/command.h"
#include "cli/find.h"
#include "cli/progress.h"
#include "cli/reproduce_report.h"
#include "cli/train.h"
#include "experiments/folder.h"
#include "experiments/run.h"

// `lrnn train --seeds`: runs that differ in their seed alone, and their summary.
namespace lrnn::cli {
namespace {

using experiments::Outcome;
using experiments::PlannedRun;
using experiments::RunProgress;

std::vector<PlannedRun> plan_seeds(const TrainArguments& a, const experiments::RunConfig& base) {
  std::vector<PlannedRun> out;
  for (int64_t seed = base.seed; seed < base.seed + a.seeds; ++seed) {
    PlannedRun run;
    run.seed = seed, run.lr = base.train.lr, run.lengths = false;
    run.folder = a.out.empty() ? default_folder(a, seed) : cat(a.out, "/seed", seed);
    run.config = a.config, run.overrides = a.overrides;
    run.overrides.push_back(cat("seed=", seed));
    run.resolved = experiments::read_config(run.config, run.overrides);
    out.push_back(std::move(run));
  }
  return out;
}

// Everything that can be refused is refused before the first run begins or makes room.
void make_ready(const TrainArguments& a, const std::vector<PlannedRun>& runs) {
  experiments::build(runs[0].resolved, *tasks::make(runs[0].resolved.task));
  for (const auto& run : runs) {
    if (a.overwrite) experiments::check_removable(run.folder, a.from);
    if (!a.resume && experiments::busy(run))
      throw Error(cat("another process is training in ", run.folder), "wait for it, or stop it");
    if (!a.resume && !a.overwrite && std::filesystem::exists(run.folder + "/config.yaml"))
      throw Error(
          cat(run.folder, " already holds a run"),
          "--resume goes on with those that are not finished, --overwrite starts all again");
  }
  for (const auto& run : runs) {
    if (a.overwrite && std::filesystem::exists(run.folder)) {
      const auto lock = experiments::FileLock::take(run.folder + "/lock");
      check(lock.has_value(), "another process is training in ", run.folder);
      experiments::remove_run(run.folder);
    }
    if (!a.from.empty() && !std::filesystem::exists(run.folder + "/config.yaml"))
      warn_of_damage(experiments::start_from(a.from, run.folder, run.resolved));
  }
}

Json to_json(const Outcome& run, const RunProgress& progress,
             const experiments::RunConfig& config) {
  Json out{{"seed", run.seed}, {"run", run.folder}, {"done", run.done}};
  out["step"] = run.done ? run.step : progress.now.step;
  out["steps"] = config.train.steps;
  const auto score = run.text ? std::pair{"loss", run.loss} : std::pair{"scaled", run.scaled};
  for (const auto& [key, value] : {std::pair{"accuracy", run.accuracy}, score})
    out[key] = value;  // null where it is not known
  out["seconds"] = run.done ? Json(run.seconds) : Json(nullptr);
  if (progress.state == RunProgress::kFailed) out["error"] = progress.error;
  out["warnings"] = progress.warnings;
  return out;
}

struct SeedsReport {
  std::vector<Outcome> runs;
  experiments::Summary accuracy, scaled;
  experiments::Summary loss;  // of language models: the best is the lowest
  bool text = false;
};

SeedsReport sum_up(const std::vector<PlannedRun>& runs) {
  SeedsReport out;
  std::vector<double> accuracy, scaled, gain;
  for (const auto& run : runs) {
    out.runs.push_back(experiments::read_outcome(run));
    if (!out.runs.back().done) continue;
    accuracy.push_back(out.runs.back().accuracy), scaled.push_back(out.runs.back().scaled);
    gain.push_back(-out.runs.back().loss), out.text = out.runs.back().text;
  }
  out.loss = experiments::summarise(gain);
  out.loss.best = -out.loss.best, out.loss.median = -out.loss.median;
  out.accuracy = experiments::summarise(accuracy), out.scaled = experiments::summarise(scaled);
  return out;
}

void print(const SeedsReport& report) {
  figures::Table table(
      {"seed", "accuracy", report.text ? "loss" : "scaled", "steps", "seconds", "run"});
  for (const auto& run : report.runs)
    table.row({std::to_string(run.seed), decimals(run.accuracy, 4),
               decimals(report.text ? run.loss : run.scaled, 4),
               run.done ? std::to_string(run.step) : "–", run.done ? decimals(run.seconds, 1) : "–",
               run.folder});
  const auto row = [&](const char* name, double accuracy, double scaled) {
    table.row({name, decimals(accuracy, 4), decimals(scaled, 4), "", "", ""});
  };
  const auto& score = report.text ? report.loss : report.scaled;
  row("best", report.accuracy.best, score.best);
  row("median", report.accuracy.median, score.median);
  row("MAD", report.accuracy.mad, score.mad);
  std::cout << table.text();
}

std::string same_command(const TrainArguments& a, const std::string& device) {
  std::string out = "lrnn train";
  if (!a.from.empty()) out += " --from " + shell_word(a.from);
  if (a.from.empty() || a.config != a.from + "/config.yaml") out += " " + shell_word(a.config);
  for (const auto& pair : a.overrides) out += " " + shell_word(pair);
  out += cat(" --seeds ", a.seeds);
  if (a.jobs > 1) out += cat(" --jobs ", a.jobs);
  if (!a.out.empty()) out += " --out " + shell_word(a.out);
  return out + " --resume" + (device == "cpu" ? "" : " --device " + device);
}

int report_seeds(const TrainArguments& a, const std::string& device,
                 const std::vector<PlannedRun>& runs, const std::vector<RunProgress>& progress) {
  const auto report = sum_up(runs);
  if (a.json) {
    Json list = Json::array();
    for (size_t i = 0; i < runs.size(); ++i)
      list.push_back(to_json(report.runs[i], progress[i], runs[i].resolved));
    print_json(
        {{"runs", list},
         {"accuracy", summary_json(report.accuracy)},
         {report.text ? "loss" : "scaled", summary_json(report.text ? report.loss : report.scaled)},
         {"interrupted", interrupted()}});
  } else if (!interrupted()) {
    print(report);
  }
  bool failed = false;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const auto& sentence : progress[i].warnings) say("warning: " + sentence);
    if (progress[i].state != RunProgress::kFailed) continue;
    failed = true;
    say(fmt::format("lrnn: seed {} failed: {}", runs[i].seed, progress[i].error));
    if (const auto log = runs[i].folder + "/train.log"; std::filesystem::exists(log))
      say("      " + log + " has all it said");
  }
  if (interrupted()) {
    say("interrupted; everything is saved\ngo on with: " + same_command(a, device));
    return kInterrupted;
  }
  return failed ? kError : kDone;
}

}  // namespace

int train_seeds(const TrainArguments& a, const std::string& device) {
  const auto base = experiments::read_config(a.config, a.overrides);
  require_memory(base, device, a.force);
  const auto runs = plan_seeds(a, base);
  make_ready(a, runs);
  experiments::Suite suite;
  auto& cell = suite.cells.emplace_back();
  cell.task = base.task.text("name"), cell.model = base.model.mixer.text("name");
  const int64_t jobs = std::min(a.jobs, a.seeds);
  const auto cores = int64_t(std::max(1u, std::thread::hardware_concurrency()));
  watch_interrupts();
  RunsProgress bars(suite, runs, jobs, a.quiet);
  if (!a.quiet)
    say(fmt::format("training {} seeds, {} at a time, in {} …", a.seeds, jobs, runs[0].folder));
  const auto progress = experiments::run_all(
      runs, {.device = device,
             .jobs = jobs,
             .threads = jobs == 1 ? 0 : std::max<int64_t>(1, cores / jobs),
             .extend = a.extend(),
             .tensorboard = a.tensorboard,
             .force = a.force,
             .progress = [&](const auto& now, bool ended) { bars.show(now, ended); },
             .interrupted = interrupted});
  bars.clear();
  return report_seeds(a, device, runs, progress);
}

}  // namespace lrnn::cli
