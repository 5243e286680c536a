#include "experiments/reproduce.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "base/atomic_file.h"
#include "base/free_memory.h"
#include "experiments/folder.h"
#include "experiments/memory.h"
#include "experiments/outcome.h"
#include "experiments/process.h"
#include "experiments/training_thread.h"

namespace lrnn::experiments {
namespace {

namespace fs = std::filesystem;
constexpr int kLookEveryMs = 200;
constexpr double kMemoryPerRun = 1.5e9;  // at least: LibTorch itself, and some activations
constexpr int64_t kTail = 4096;

// The last line of a log that says something.
std::string last_line(const std::string& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  const auto size = int64_t(in.tellg());
  if (!in || size <= 0) return "";
  in.seekg(std::max<int64_t>(0, size - kTail));
  std::string out;
  for (std::string line; std::getline(in, line);)
    if (line.find_first_not_of(' ') != std::string::npos) out = line;
  return out;
}

// The sentence of an error among the lines of a log: "lrnn: …".
std::string last_error(const std::string& file) {
  std::ifstream in(file);
  std::string out, last;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("lrnn: ", 0) == 0) out = line.substr(6);
    if (!line.empty()) last = line;
  }
  return out.empty() ? last : out;
}

// The warnings in a log from that byte on.
std::vector<std::string> warnings_in(const std::string& file, int64_t from) {
  const std::string mark = "warning: ";
  std::vector<std::string> out;
  std::ifstream in(file);
  in.seekg(from);
  for (std::string line; std::getline(in, line);)
    if (line.rfind(mark, 0) == 0) out.push_back(line.substr(mark.size()));
  return out;
}

// One run: training, then accuracy by length. On the CPU each is a process of its own; on a GPU
// training is a thread of this one.
class Worker {
 public:
  Worker(const PlannedRun& run, size_t index, const ReproduceOptions& options)
      : run_(run), index_(index), options_(options), log_(run.folder + "/train.log") {
    fs::create_directories(run.folder);
    if (fs::exists(log_)) log_before_ = int64_t(fs::file_size(log_));
    // Other steps would extend a run that is there, unless that was asked for.
    if (const auto config = run.folder + "/config.yaml"; fs::exists(config))
      require_same(config, run.resolved, options.extend);
    if (options.device != "cpu") {
      thread_ = std::make_unique<TrainingThread>(run.resolved,
                                                 TrainOptions{.out = run.folder,
                                                              .device = options.device,
                                                              .extend = options.extend,
                                                              .tensorboard = options.tensorboard});
      return;
    }
    std::vector<std::string> words = {options.program, "train", run.config};
    words.insert(words.end(), run.overrides.begin(), run.overrides.end());
    for (const auto& word : {std::string("--out"), run.folder, std::string("--resume")})
      words.push_back(word);
    if (options.tensorboard) words.push_back("--tensorboard");
    if (options.force) words.push_back("--force");
    start(std::move(words), "");
  }

  size_t index() const { return index_; }
  void stop() {
    stopped_ = true;
    process_ ? process_->stop() : thread_->stop();
  }

  // Looks at the run; false once it has ended.
  bool look(RunProgress& progress) {
    if (thread_)
      read_thread(progress);
    else if (!measuring_)
      read_log(progress);
    if (process_ ? process_->running() : thread_->running()) return true;
    const int code = process_ ? process_->code() : thread_->code();
    if (code == 0 && !measuring_ && wants_lengths(run_)) return measure(progress), true;
    progress.warnings = warnings_in(log_, log_before_);
    if (code == 0 && measuring_) fs::rename(partial(), lengths_file(run_));
    progress.state = code == 0 ? RunProgress::kDone : RunProgress::kFailed;
    if (code == 0) progress.step = progress.steps;
    if (code != 0 && stopped_) progress.state = RunProgress::kWaiting;
    if (progress.state == RunProgress::kFailed) progress.news = why(code);
    return false;
  }

 private:
  void start(std::vector<std::string> words, const std::string& out) {
    Process::Command command{std::move(words), out, log_, {}};
    if (options_.threads > 0)
      command.environment.emplace_back("OMP_NUM_THREADS", std::to_string(options_.threads));
    process_ = std::make_unique<Process>(command);
  }

  void measure(RunProgress& progress) {
    measuring_ = true;
    thread_.reset();
    progress.state = RunProgress::kMeasuring;
    progress.step = progress.steps;
    fs::create_directories(fs::path(partial()).parent_path());
    start({options_.program, "eval", run_.folder, "--json", "--device", options_.device},
          partial());
  }

  void read_thread(RunProgress& progress) const {
    const auto p = thread_->progress();
    if (p.steps == 0) return;
    progress.step = p.step, progress.steps = p.steps;
    progress.steps_per_second = p.steps_per_second;
    progress.news = fmt::format("loss {:.4f}", p.loss);
  }

  void read_log(RunProgress& progress) const {
    const auto line = last_line(log_);
    long step = 0, steps = 0;
    double rate = 0;
    if (std::sscanf(line.c_str(), "step %ld/%ld %lf", &step, &steps, &rate) != 3) return;
    progress.step = step, progress.steps = steps, progress.steps_per_second = rate;
    const auto loss = line.find("loss ");
    progress.news = loss == std::string::npos ? "" : line.substr(loss, line.rfind("  ") - loss);
  }

  std::string why(int code) const {
    if (thread_) return thread_->error();
    if (code == 127) return "the program could not be started";
    if (code == 130) return "it was stopped from outside";
    if (code > 128) return cat("the process was ended by signal ", code - 128);
    return last_error(log_);
  }
  std::string partial() const { return lengths_file(run_) + ".partial"; }

  const PlannedRun& run_;
  size_t index_;
  const ReproduceOptions& options_;
  std::string log_;
  std::unique_ptr<TrainingThread> thread_;  // on a GPU, until the training is done
  std::unique_ptr<Process> process_;
  int64_t log_before_ = 0;  // bytes that earlier tries left in the log
  bool measuring_ = false, stopped_ = false;
};

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

std::vector<RunProgress> reproduce(const std::vector<PlannedRun>& runs,
                                   const ReproduceOptions& options) {
  std::vector<RunProgress> all(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    all[i].steps = runs[i].resolved.train.steps;
    if (!finished(runs[i])) continue;
    all[i].state = RunProgress::kDone, all[i].step = all[i].steps;
    if (const double seconds = read_outcome(runs[i]).seconds; seconds > 0)
      all[i].steps_per_second = double(all[i].steps) / seconds;
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
          all[i].state = RunProgress::kFailed, all[i].news = e.what();
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
    if (progress[i].steps_per_second > 0) {
      known[runs[i].config].push_back(1 / progress[i].steps_per_second);
      all.push_back(1 / progress[i].steps_per_second);
    }
  if (all.empty()) return -1;
  double sum = 0, longest = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto& p = progress[i];
    if (p.state == RunProgress::kDone || p.state == RunProgress::kFailed) continue;
    const auto same = known.find(runs[i].config);
    const double per_step = p.steps_per_second > 0
                                ? 1 / p.steps_per_second
                                : median_of(same == known.end() ? all : same->second);
    const double left = double(p.steps - p.step) * per_step;
    sum += left, longest = std::max(longest, left);
  }
  return std::max(longest, sum / double(std::max<int64_t>(1, jobs)));
}

}  // namespace lrnn::experiments
