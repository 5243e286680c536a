#include "experiments/demo.h"

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/atomic_file.h"

namespace lrnn::experiments {
namespace {

constexpr double kSolved = 0.95, kFailed = 0.15;
constexpr int64_t kSpectrumSamples = 16;

using tasks::Split;

std::vector<PlannedRun> plan_demo(const DemoOptions& options) {
  std::vector<PlannedRun> out;
  for (const auto& c : demo_cases()) {
    PlannedRun run;
    run.folder = cat(options.out, "/", c.config), run.lengths = false;
    run.config = cat(options.configs, "/demo/", c.config, ".yaml");
    run.overrides = {"train.threads=1"};  // so small a model trains quickest on one
    if (options.seed >= 0) run.overrides.push_back(cat("seed=", options.seed));
    run.resolved = read_config(run.config, run.overrides);
    out.push_back(std::move(run));
  }
  return out;
}

// An earlier demo in the same folder is replaced; anything else there is left alone.
void make_room(const DemoOptions& options, const std::vector<PlannedRun>& runs) {
  const std::string mark = options.out + "/demo.json";
  const bool ours = std::filesystem::exists(mark);
  for (const auto& run : runs) {
    if (ours) std::filesystem::remove_all(run.folder);
    if (std::filesystem::exists(run.folder + "/config.yaml"))
      throw Error(run.folder + " already holds a run", "choose another folder with --out");
  }
  std::error_code ignored;  // the write fails too, and says so
  std::filesystem::create_directories(options.out, ignored);
  write_atomically(mark, "{}\n");
}

// False when it was interrupted. A run that fails ends the others and becomes an Error.
bool train_all(const DemoOptions& options, const std::vector<PlannedRun>& runs) {
  const auto failed = [](const RunProgress& run) { return run.state == RunProgress::kFailed; };
  const auto name = [](size_t i) { return cat(demo_cases()[i].task, ", ", demo_cases()[i].model); };
  bool any_failed = false;
  const auto all = run_all(
      runs, {.jobs = int64_t(std::max(1u, std::thread::hardware_concurrency())),
             .force = true,
             .progress =
                 [&](const std::vector<RunProgress>& now, bool) {
                   any_failed = any_failed || std::any_of(now.begin(), now.end(), failed);
                   if (options.progress) options.progress(now);
                 },
             .interrupted =
                 [&] { return any_failed || (options.interrupted && options.interrupted()); }});
  for (size_t i = 0; i < all.size(); ++i)
    if (failed(all[i])) throw Error(cat(name(i), ": ", all[i].error));
  return std::all_of(all.begin(), all.end(),
                     [](const RunProgress& run) { return run.state == RunProgress::kDone; });
}

// Answers at every position: the curve says how far a sequence stays right.
void measure_prefixes(DemoRow& row, const training::EvaluateOptions& how) {
  const auto e = training::evaluate(*row.run.model, *row.run.task, how);
  const int64_t trained = row.run.task->length(Split::kTrain).hi;
  row.bins = prefix_bins(e);
  row.inside = e.prefix.at(size_t(std::min(trained, int64_t(e.prefix.size()) - 1)));
  row.beyond = e.accuracy();
}

// The score within the training lengths and at those of the evaluation, and the curve. Where they
// lie far apart it has a point for each length of training and leads from there to the others.
void measure_answers(DemoRow& row, training::EvaluateOptions how) {
  const auto at = [&](const Range& lengths) {
    how.length = lengths;
    return training::evaluate(*row.run.model, *row.run.task, how);
  };
  const Range trained = row.run.task->length(Split::kTrain),
              far = row.run.task->length(Split::kEval);
  const auto inside = at(trained), beyond = at(far);
  if (trained.hi + 1 < far.lo) {
    const auto between = at({trained.hi + 1, far.lo - 1});
    for (const auto* part : {&inside, &between, &beyond})
      for (const auto& bin : bins(part->by_length)) row.bins.push_back(bin);
  } else {
    auto by_length = beyond.by_length;
    for (const auto& [length, tally] : inside.by_length) by_length.emplace(length, tally);
    row.bins = bins(by_length);
  }
  row.inside = inside.scaled(), row.beyond = beyond.scaled();
}

}  // namespace

const std::vector<DemoCase>& demo_cases() {
  static const std::vector<DemoCase> cases = {
      {"parity_01", "parity", "DeltaNet [0,1]", false, "no eigenvalue below 0: nothing can flip"},
      {"parity_11", "parity", "DeltaNet [-1,1]", true, "eigenvalue -1: each 1 flips a sign"},
      {"parity_01_short", "parity, short words", "DeltaNet [0,1]", false,
       "what it learned of short words does not carry on"},
      {"addition_n1", "addition mod 3", "DeltaProduct n_h=1", false,
       "real eigenvalues: one layer cannot turn by a third"},
      {"addition_n2", "addition mod 3", "DeltaProduct n_h=2", true,
       "two reflections are a rotation"},
  };
  return cases;
}

bool DemoRow::as_predicted() const { return about.can ? beyond >= kSolved : beyond <= kFailed; }

std::vector<DemoRow> run_demo(const DemoOptions& options) {
  const auto runs = plan_demo(options);
  make_room(options, runs);
  if (!train_all(options, runs)) return {};

  std::vector<DemoRow> rows;
  for (size_t i = 0; i < runs.size(); ++i) {
    DemoRow row{demo_cases()[i], open(runs[i].folder), 0, 0, {}, {}};
    const training::EvaluateOptions how{.seed = uint64_t(row.run.config.seed),
                                        .precision = row.run.config.train.precision};
    if (row.run.task->score() == tasks::Score::kPrefix)
      measure_prefixes(row, how);
    else
      measure_answers(row, how);
    row.spectrum = spectrum(*row.run.model, *row.run.task, how.seed, kSpectrumSamples);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace lrnn::experiments
