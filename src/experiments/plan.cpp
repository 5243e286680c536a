#include "experiments/plan.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "base/atomic_file.h"
#include "experiments/files.h"
#include "experiments/folder.h"

namespace lrnn::experiments {
namespace {

using PlanJson = nlohmann::ordered_json;

// Fewer steps, with the warm-up and the evaluations in proportion.
std::vector<std::string> shortened(const RunConfig& config, double scale) {
  if (scale == 1) return {};
  const auto part = [&](int64_t whole) {
    return std::max<int64_t>(1, std::llround(double(whole) * scale));
  };
  const auto& t = config.train;
  const int64_t steps = part(t.steps);
  std::vector<std::string> out = {cat("train.steps=", steps)};
  if (t.warmup > 0) out.push_back(cat("train.warmup=", part(t.warmup)));
  if (t.eval_every > steps) out.push_back(cat("train.eval_every=", steps));
  return out;
}

std::string stem(const Cell& cell) { return std::filesystem::path(cell.config).filename(); }

}  // namespace

const std::vector<double>& lr_grid() {
  static const std::vector<double> rates = {1e-2, 1e-3, 5e-4, 1e-4};
  return rates;
}

std::string suite_folder(const Suite& suite, const PlanOptions& options) {
  std::string out = options.out + "/" + suite.name;
  return options.scale == 1 ? out : fmt::format("{}-scale{:g}", out, options.scale);
}

std::vector<PlannedRun> plan(const Suite& suite, const PlanOptions& options) {
  check(options.seeds >= 1, "--seeds must be at least 1, got ", options.seeds);
  check(options.scale > 0 && options.scale <= 1, "--scale must be above 0 and at most 1, got ",
        options.scale);
  std::vector<PlannedRun> out;
  for (size_t cell = 0; cell < suite.cells.size(); ++cell) {
    const std::string file = cat(options.configs, "/", suite.cells[cell].config, ".yaml");
    const auto base = read_config(file, options.keys);
    const auto rates = options.lr_grid ? lr_grid() : std::vector<double>{base.train.lr};
    for (const double lr : rates)
      for (int64_t i = 0; i < options.seeds; ++i) {
        PlannedRun run{cell, base.seed + i, lr, "", file, options.keys, {}};
        for (const auto& key : shortened(base, options.scale)) run.overrides.push_back(key);
        if (options.lr_grid) run.overrides.push_back(fmt::format("train.lr={:g}", lr));
        run.overrides.push_back(cat("seed=", run.seed));
        run.resolved = read_config(file, run.overrides);
        run.folder =
            fmt::format("{}/{}/{}seed{}", suite_folder(suite, options), stem(suite.cells[cell]),
                        options.lr_grid ? fmt::format("lr{:g}-", lr) : "", run.seed);
        out.push_back(std::move(run));
      }
  }
  return out;
}

bool wants_lengths(const PlannedRun& run) {
  return run.lengths && tasks::make(run.resolved.task)->score() == tasks::Score::kAnswer;
}

std::string lengths_file(const PlannedRun& run) { return run.folder + "/eval/length.json"; }

bool finished(const PlannedRun& run) {
  const std::string result = run.folder + "/result.json", config = run.folder + "/config.yaml";
  if (!std::filesystem::exists(result) || !std::filesystem::exists(config)) return false;
  if (wants_lengths(run) && !std::filesystem::exists(lengths_file(run))) return false;
  const auto json = PlanJson::parse(read_file(result), nullptr, false);
  return json.is_object() &&
         run.resolved.train.ended(json.value("step", int64_t(-1)),
                                  json.value("best_accuracy", -1.0)) &&
         changes(config, run.resolved).empty();
}

bool busy(const PlannedRun& run) { return FileLock::held(run.folder + "/lock"); }

}  // namespace lrnn::experiments
