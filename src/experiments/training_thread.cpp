#include "experiments/training_thread.h"

namespace lrnn::experiments {

TrainingThread::TrainingThread(const RunConfig& config, const std::string& folder,
                               const std::string& device)
    : thread_([this, config, folder, device] { work(config, folder, device); }) {}

TrainingThread::~TrainingThread() {
  stop();
  thread_.join();
}

void TrainingThread::work(const RunConfig& config, const std::string& folder,
                          const std::string& device) {
  try {
    const auto result = train(config, {.out = folder,
                                       .device = device,
                                       .resume = true,
                                       .progress =
                                           [this](const Progress& p) {
                                             const std::lock_guard lock(mutex_);
                                             progress_ = p;
                                           },
                                       .interrupted = [this] { return bool(stop_); }});
    code_ = result.interrupted ? 130 : 0;
  } catch (const std::exception& e) {
    error_ = e.what(), code_ = 2;
  }
  ended_ = true;
}

Progress TrainingThread::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

}  // namespace lrnn::experiments
