#include "experiments/by_octave.h"

#include <algorithm>

namespace lrnn::experiments {

void ByOctave::add(const tasks::Example& example, const training::TokenLosses& losses) {
  const auto length = int64_t(example.target.size());
  for (int64_t from = 1; from <= length; from *= 2) {
    OctaveLoss row{.sequence = sequences_, .from = from, .to = std::min(2 * from - 1, length)};
    double nats = 0;
    for (int64_t position = row.from; position <= row.to; ++position) {
      const auto i = size_t(position - 1);
      if (example.target[i] < 0) continue;
      nats += double(losses.loss[i]), ++row.targets;
    }
    if (row.targets == 0) continue;
    row.loss = nats / double(row.targets);
    rows_.push_back(row);
  }
  ++sequences_;
}

}  // namespace lrnn::experiments
