#include "training/threads.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace lrnn::training {
namespace {

// Below this many operations per update, waking a second thread at every op costs more than it
// brings.
constexpr double kWorthSharing = 5e8;

}  // namespace

int64_t choose_threads(const model::Model& model, const tasks::Task& task,
                       const TrainConfig& config) {
  if (config.threads > 0) return config.threads;
  if (!model.device().is_cpu()) return 1;
  double weights = 0;
  for (const auto& parameter : model.parameters()) weights += double(parameter.numel());
  const Range length = task.length(tasks::Split::kTrain);
  const double tokens = double(config.batch) * double(length.lo + length.hi) / 2;
  // A multiply and an add per weight and token, forward once and backward twice.
  if (6 * weights * tokens < kWorthSharing) return 1;
  return std::max<int64_t>(1, at::get_num_threads());
}

Threads::Threads(int64_t count) : before_(at::get_num_threads()) {
  at::set_num_threads(int(count));
}
Threads::~Threads() { at::set_num_threads(before_); }

}  // namespace lrnn::training
