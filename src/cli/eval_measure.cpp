#include "cli/eval_measure.h"

#include <fmt/format.h>

#include <algorithm>

#include "figures/line_chart.h"

namespace lrnn::cli {

using lrnn::tasks::Score;
using lrnn::tasks::Split;

Measured measure(experiments::Run& run, const EvalArguments& a, training::EvaluateOptions how) {
  Range length = a.length;
  how.seed = uint64_t(a.seed >= 0 ? a.seed : run.config.seed);
  how.samples = a.samples;
  Measured out;
  out.prefix = run.task->score() == Score::kPrefix;
  // A prefix of a long sequence is as good as a short one.
  if (out.prefix) length.lo = length.hi;
  how.length = length;
  out.length = length == Range{} ? run.task->length(Split::kEval) : length;
  out.whole = training::evaluate(*run.model, *run.task, how);
  if (out.prefix) return out.bins = experiments::prefix_bins(out.whole), out;

  auto by_length = out.whole.by_length;
  if (length == Range{}) {
    // The lengths it was trained on belong into the picture too, though not into the number.
    how.length = run.task->length(Split::kTrain);
    for (const auto& [length, tally] : training::evaluate(*run.model, *run.task, how).by_length)
      if (!out.whole.by_length.contains(length)) by_length[length] = tally;
  }
  out.bins = experiments::bins(by_length);
  return out;
}

std::string label(const experiments::LengthBin& bin) {
  return bin.lo == bin.hi ? std::to_string(bin.lo) : fmt::format("{}–{}", bin.lo, bin.hi);
}

std::string chart(const experiments::Run& run, const std::vector<Curve>& curves) {
  const Measured& m = *curves.front().measured;
  std::vector<figures::Series> series;
  for (const auto& [name, measured] : curves) {
    series.push_back({name, {}});
    const double chance = measured->chance();
    for (const auto& b : measured->bins)
      series.back().points.push_back(
          {double(b.lo + b.hi) / 2, experiments::scaled(b.tally.accuracy(), chance),
           experiments::scaled(b.low, chance), experiments::scaled(b.high, chance)});
  }
  const int64_t trained = run.task->length(Split::kTrain).hi;
  // Positions always begin at the first, so what makes their axis wide is the distance to training.
  const double near = m.prefix
                          ? double(trained)
                          : double(m.bins.empty() ? 1 : std::max<int64_t>(m.bins.front().lo, 1));
  const bool wide = !m.bins.empty() && double(m.bins.back().hi) / near > (m.prefix ? 16 : 400);
  return draw(figures::LineChart{
      .title = m.prefix ? "Sequences that are right up to a position" : "Accuracy by length",
      .x_label = m.prefix ? "position" : "length of the sequence",
      .y_label = m.prefix ? "share of sequences" : "scaled accuracy",
      .series = series,
      .markers = {{double(trained), fmt::format("longest in training: {}", trained)}},
      .y = {{0, 1}},
      .log_x = wide});
}

}  // namespace lrnn::cli
