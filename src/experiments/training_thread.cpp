#include "experiments/training_thread.h"

namespace lrnn::experiments {

TrainingThread::TrainingThread(const RunConfig& config, const TrainOptions& options)
    : thread_([this, config, options] { work(config, options); }) {}

TrainingThread::~TrainingThread() {
  stop();
  thread_.join();
}

void TrainingThread::work(const RunConfig& config, TrainOptions options) {
  options.resume = true;
  options.progress = [this](const Progress& p) {
    const std::lock_guard lock(mutex_);
    progress_ = p;
  };
  options.interrupted = [this] { return bool(stop_); };
  try {
    code_ = train(config, options).interrupted ? 130 : 0;
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
