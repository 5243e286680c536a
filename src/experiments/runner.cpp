#include "experiments/runner.h"

#include <poll.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/free_memory.h"
#include "experiments/child.h"
#include "experiments/folder.h"
#include "experiments/outcome.h"
#include "experiments/reason.h"
#include "experiments/run.h"

namespace lrnn::experiments {

namespace {

// One run under way: training, then accuracy by length.
class Worker {
 public:
  Worker(const PlannedRun& run, size_t index, const RunnerOptions& options);

  size_t index() const { return index_; }
  void stop();
  bool look(RunProgress& progress);  // at how it goes; false once it has ended

 private:
  void start(std::vector<std::string> words, const std::string& out);
  void measure(RunProgress& progress);
  std::string partial() const { return lengths_file(run_) + ".partial"; }

  const PlannedRun& run_;
  size_t index_;
  const RunnerOptions& options_;
  std::unique_ptr<Child> child_;  // that trains, then the one that measures
  bool measuring_ = false, stopped_ = false;
};

// For those that ended without a word.
std::string reason(int code) {
  if (code == 127) return "the program could not be started";
  if (code == 130) return "it was stopped from outside";
  if (code > 128) return cat("the process was ended by signal ", code - 128);
  return cat("it ended with exit code ", code, " and did not say why");
}

Worker::Worker(const PlannedRun& run, size_t index, const RunnerOptions& options)
    : run_(run), index_(index), options_(options) {
  std::filesystem::create_directories(run.folder);
  // Other steps would extend a run that is there, unless that was asked for.
  if (const auto config = run.folder + "/config.yaml"; std::filesystem::exists(config))
    require_same(config, run.resolved, options.extend);
  if (options.device != "cpu") {
    child_ = std::make_unique<TrainingThread>(run.resolved,
                                              TrainOptions{.out = run.folder,
                                                           .device = options.device,
                                                           .extend = options.extend,
                                                           .tensorboard = options.tensorboard});
    return;
  }
  std::vector<std::string> words = {"train", run.config};
  words.insert(words.end(), run.overrides.begin(), run.overrides.end());
  for (const auto& word : {std::string("--out"), run.folder, std::string("--resume")})
    words.push_back(word);
  if (options.tensorboard) words.emplace_back("--tensorboard");
  if (options.force) words.emplace_back("--force");
  start(std::move(words), "");
}

void Worker::start(std::vector<std::string> words, const std::string& out) {
  words.insert(words.begin(), options_.program.empty() ? this_program() : options_.program);
  words.emplace_back("--progress"), words.emplace_back(Process::kMessages);
  Process::Command command{std::move(words), out, run_.folder + "/train.log", {}};
  if (options_.threads > 0)
    command.environment.emplace_back("OMP_NUM_THREADS", std::to_string(options_.threads));
  child_ = std::make_unique<Process>(command);
}

void Worker::stop() {
  stopped_ = true;
  child_->stop();
}

void Worker::measure(RunProgress& progress) {
  measuring_ = true;
  progress.state = RunProgress::kMeasuring;
  progress.now.step = progress.now.steps;
  std::filesystem::create_directories(std::filesystem::path(partial()).parent_path());
  child_.reset();  // a thread gives its memory back
  start({"eval", run_.folder, "--json", "--device", options_.device}, partial());
}

bool Worker::look(RunProgress& progress) {
  const bool running = child_->running();  // before the last words are read
  for (auto& message : child_->said()) {
    if (message.kind == Message::kProgress) progress.now = message.progress;
    if (message.kind == Message::kWarning) progress.warnings.push_back(std::move(message.text));
    if (message.kind == Message::kError) progress.error = std::move(message.text);
  }
  if (running) return true;
  const int code = child_->code();
  if (code == 0 && !measuring_ && wants_lengths(run_)) return measure(progress), true;
  if (code == 0) {
    if (measuring_) std::filesystem::rename(partial(), lengths_file(run_));
    progress.state = RunProgress::kDone, progress.now.step = progress.now.steps;
    return false;
  }
  progress.state = stopped_ ? RunProgress::kWaiting : RunProgress::kFailed;
  if (!stopped_ && progress.error.empty()) progress.error = reason(code);
  return false;
}

constexpr int kLookEveryMs = 200;
constexpr double kMemoryPerRun = 1.5e9;  // at least: LibTorch itself, and some activations

void wait_a_moment() { ::poll(nullptr, 0, kLookEveryMs); }

}  // namespace

int64_t jobs_that_fit(const std::vector<PlannedRun>& runs, const std::string& device) {
  double largest = kMemoryPerRun;
  std::set<std::string> seen;
  for (const auto& run : runs)
    if (device == "cpu" && seen.insert(run.config).second)
      largest = std::max(largest, memory_of(run.resolved).total());
  const auto cores = int64_t(std::max(1u, std::thread::hardware_concurrency()));
  return std::clamp<int64_t>(int64_t(double(free_memory()) / largest), 1, cores);
}

std::vector<RunProgress> run_all(const std::vector<PlannedRun>& runs,
                                 const RunnerOptions& options) {
  std::vector<RunProgress> all(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    auto& now = all[i].now;
    now.steps = runs[i].resolved.train.steps;
    if (!finished(runs[i])) continue;
    all[i].state = RunProgress::kDone, now.step = now.steps;
    if (const double seconds = read_outcome(runs[i]).seconds; seconds > 0)
      now.steps_per_second = double(now.steps) / seconds;
  }
  std::vector<std::unique_ptr<Worker>> workers;
  bool stopping = false;
  while (true) {
    // The next one that nobody else is at work on; such a one gets another look later.
    for (size_t i = 0; i < runs.size() && !stopping && int64_t(workers.size()) < options.jobs; ++i)
      if (all[i].state == RunProgress::kWaiting && !busy(runs[i])) {
        all[i].state = RunProgress::kRunning;
        try {
          workers.push_back(std::make_unique<Worker>(runs[i], i, options));
        } catch (const std::exception& e) {
          all[i].state = RunProgress::kFailed, all[i].error = reason_of(e).text;
        }
      }
    const bool waiting = std::any_of(all.begin(), all.end(), [](const RunProgress& p) {
      return p.state == RunProgress::kWaiting;
    });
    if (workers.empty() && (stopping || !waiting)) break;
    wait_a_moment();
    if (!stopping && options.interrupted && options.interrupted()) {
      stopping = true;
      for (auto& worker : workers) worker->stop();
    }
    const auto ended =
        std::erase_if(workers, [&](auto& worker) { return !worker->look(all[worker->index()]); });
    if (options.progress) options.progress(all, ended > 0);
  }
  return all;
}

double seconds_left(const std::vector<PlannedRun>& runs, const std::vector<RunProgress>& progress,
                    int64_t jobs) {
  // Seconds per step of each config, of the runs that say so; a new one is like the average.
  std::map<std::string, std::vector<double>> known;
  std::vector<double> all;
  for (size_t i = 0; i < runs.size(); ++i)
    if (progress[i].now.steps_per_second > 0) {
      known[runs[i].config].push_back(1 / progress[i].now.steps_per_second);
      all.push_back(1 / progress[i].now.steps_per_second);
    }
  if (all.empty()) return -1;
  double sum = 0, longest = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto& p = progress[i];
    if (p.state == RunProgress::kDone || p.state == RunProgress::kFailed) continue;
    const auto same = known.find(runs[i].config);
    const double per_step = p.now.steps_per_second > 0
                                ? 1 / p.now.steps_per_second
                                : median_of(same == known.end() ? all : same->second);
    const double left = double(p.now.steps - p.now.step) * per_step;
    sum += left, longest = std::max(longest, left);
  }
  return std::max(longest, sum / double(std::max<int64_t>(1, jobs)));
}

}  // namespace lrnn::experiments
