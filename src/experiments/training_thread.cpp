#include "experiments/training_thread.h"

#include <utility>

namespace lrnn::experiments {

TrainingThread::TrainingThread(const RunConfig& config, const TrainOptions& options)
    : thread_([this, config, options] { work(config, options); }) {}

TrainingThread::~TrainingThread() {
  stop();
  thread_.join();
}

void TrainingThread::work(const RunConfig& config, TrainOptions options) {
  options.resume = true;
  options.progress = [this](const Progress& p) { say({.progress = p}); };
  options.warn = [this](const std::string& text) {
    say({.kind = Message::kWarning, .text = text});
  };
  options.interrupted = [this] { return bool(stop_); };
  try {
    code_ = train(config, options).interrupted ? 130 : 0;
  } catch (const std::exception& e) {
    say({.kind = Message::kError, .text = e.what()});
    code_ = 2;
  }
  ended_ = true;
}

void TrainingThread::say(Message message) {
  const std::lock_guard lock(mutex_);
  said_.push_back(std::move(message));
}

std::vector<Message> TrainingThread::said() {
  const std::lock_guard lock(mutex_);
  return std::exchange(said_, {});
}

}  // namespace lrnn::experiments
