#include "experiments/demo.h"

#include <filesystem>
#include <thread>

#include "base/atomic_file.h"
#include "experiments/side_by_side.h"

namespace lrnn::experiments {
namespace {

constexpr double kSolved = 0.95, kFailed = 0.15;
constexpr int64_t kSpectrumSamples = 16;

using tasks::Split;

std::vector<Job> jobs(const DemoOptions& options) {
  std::vector<Job> out;
  for (const auto& c : demo_cases()) {
    std::vector<std::string> overrides = {"train.threads=1"};
    if (options.seed >= 0) overrides.push_back(cat("seed=", options.seed));
    out.push_back({cat(c.task, ", ", c.model), cat(options.out, "/", c.config),
                   read_config(cat(options.configs, "/demo/", c.config, ".yaml"), overrides)});
  }
  return out;
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
  const auto work = jobs(options);
  // An earlier demo in the same folder is replaced; anything else there is left alone.
  const std::string mark = options.out + "/demo.json";
  if (std::filesystem::exists(mark))
    for (const auto& job : work) std::filesystem::remove_all(job.out);
  std::error_code ignored;  // the write fails too, and says so
  std::filesystem::create_directories(options.out, ignored);
  write_atomically(mark, "{}\n");
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  if (!train_side_by_side(work, cores, options.progress, options.interrupted)) return {};

  std::vector<DemoRow> rows;
  for (size_t i = 0; i < work.size(); ++i) {
    DemoRow row{demo_cases()[i], open(work[i].out), 0, 0, {}, {}};
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
