#pragma once
#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include "experiments/run.h"

namespace lrnn::experiments {

// A run that trains in a thread of this process. Runs that share a GPU are quickest so: kernels of
// different processes take turns on it, those of one process run side by side.
class TrainingThread {
 public:
  // Goes on with the run in the folder if there is one. What is shown, and when to stop, is ours.
  TrainingThread(const RunConfig& config, const TrainOptions& options);
  ~TrainingThread();  // stops it and waits
  TrainingThread(const TrainingThread&) = delete;
  TrainingThread& operator=(const TrainingThread&) = delete;

  bool running() const { return !ended_; }
  void stop() { stop_ = true; }  // save, then end
  // Once it does not run any more, as the program's exit codes are: 0 done, 2 failed, 130 stopped.
  int code() const { return code_; }
  std::string error() const { return error_; }
  Progress progress() const;

 private:
  void work(const RunConfig& config, TrainOptions options);

  mutable std::mutex mutex_;
  Progress progress_;
  std::string error_;
  int code_ = -1;
  std::atomic<bool> stop_ = false, ended_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace lrnn::experiments
