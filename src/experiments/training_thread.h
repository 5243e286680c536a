#pragma once
#include <atomic>
#include <mutex>
#include <thread>

#include "experiments/child.h"

namespace lrnn::experiments {

// A run that trains in a thread of this process.
class TrainingThread final : public Child {
 public:
  // Goes on with the run in the folder if there is one. What is shown, and when to stop, is ours.
  TrainingThread(const RunConfig& config, const TrainOptions& options);
  ~TrainingThread() override;

  bool running() override { return !ended_; }
  void stop() override { stop_ = true; }
  std::vector<Message> said() override;
  int code() const override { return code_; }

 private:
  void work(const RunConfig& config, TrainOptions options);
  void say(Message message);

  std::mutex mutex_;
  std::vector<Message> said_;
  int code_ = -1;
  std::atomic<bool> stop_ = false, ended_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace lrnn::experiments
