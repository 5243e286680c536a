#include "experiments/runner.h"

#include <poll.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "base/free_memory.h"
#include "experiments/memory.h"
#include "experiments/outcome.h"
#include "experiments/worker.h"

namespace lrnn::experiments {
namespace {

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
          all[i].state = RunProgress::kFailed, all[i].error = e.what();
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
