#include "cli/eval_measure.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/length_chart.h"

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
  std::vector<LengthCurve> drawn;
  for (const auto& [name, measured] : curves)
    drawn.push_back({name, &measured->bins, measured->chance()});
  return length_chart(curves.front().measured->prefix ? "Sequences that are right up to a position"
                                                      : "Accuracy by length",
                      *run.task, drawn);
}

}  // namespace lrnn::cli
