#include <fmt/format.h>

#include <algorithm>

#include "cli/eval.h"
#include "cli/figures.h"

// `lrnn eval`: one run over its lengths, together or each by itself.
namespace lrnn::cli {

using lrnn::tasks::Score;
using lrnn::tasks::Split;

namespace {

void add_tally(training::Tally& to, const training::Tally& more) {
  to.right += more.right, to.count += more.count;
}

// Every length by itself, with its share of the sequences.
training::Evaluation evaluate_each(experiments::Run& run, const Sequences& sequences,
                                   training::EvaluateOptions how) {
  const auto& lengths = sequences.lengths.each;
  const auto count = int64_t(lengths.size());
  check(sequences.samples >= count, "--samples ", sequences.samples, " is too few for ", count,
        " lengths");
  training::Evaluation out;
  for (int64_t i = 0; i < count; ++i) {
    how.length = {lengths[size_t(i)], lengths[size_t(i)]};
    how.samples = sequences.samples / count + (i < sequences.samples % count);
    const auto one = training::evaluate(*run.model, *run.task, how);
    out.chance = one.chance;
    out.loss += one.loss * double(how.samples) / double(sequences.samples);
    add_tally(out.sequences, one.sequences), add_tally(out.tokens, one.tokens);
    for (const auto& [length, tally] : one.by_length) add_tally(out.by_length[length], tally);
  }
  return out;
}

}  // namespace

Sequences sequences_of(const experiments::Run& run, const EvalArguments& a) {
  Sequences out{a.length,
                {},
                a.samples ? a.samples : run.task->eval_samples,
                uint64_t(a.seed >= 0 ? a.seed : run.config.seed)};
  if (!a.length.given()) {
    out.lengths.range = run.task->length(Split::kEval);
    // The lengths it was trained on belong into the picture too, though not into the number.
    out.beside = run.task->length(Split::kTrain);
  }
  // A prefix of a long sequence is as good as a short one.
  if (run.task->score() == Score::kPrefix && a.length.given())
    out.lengths.range.lo = out.lengths.range.hi;
  return out;
}

Measured measure(experiments::Run& run, const Sequences& sequences, training::EvaluateOptions how) {
  how.seed = sequences.seed;
  Measured out;
  out.prefix = run.task->score() == Score::kPrefix;
  if (!sequences.lengths.each.empty()) {
    out.whole = evaluate_each(run, sequences, how);
    out.bins = experiments::each_length(out.whole.by_length);
    return out;
  }
  how.samples = sequences.samples, how.length = sequences.lengths.range;
  out.whole = training::evaluate(*run.model, *run.task, how);
  out.positions = out.prefix;
  if (out.prefix) return out.bins = experiments::prefix_bins(out.whole), out;

  auto by_length = out.whole.by_length;
  if (!(sequences.beside == Range{})) {
    how.length = sequences.beside;
    for (const auto& [length, tally] : training::evaluate(*run.model, *run.task, how).by_length)
      if (!out.whole.by_length.contains(length)) by_length[length] = tally;
  }
  out.bins = experiments::bins(by_length);
  return out;
}

std::string label(const experiments::LengthBin& bin) {
  return bin.lo == bin.hi ? std::to_string(bin.lo) : fmt::format("{}–{}", bin.lo, bin.hi);
}

std::string chart(const std::vector<EvalCurve>& curves) {
  std::vector<LengthCurve> drawn;
  for (const auto& [name, measured, style, task] : curves)
    drawn.push_back({name, &measured->bins, measured->chance(), style, task});
  const auto& first = *curves.front().measured;
  return length_chart(first.positions ? "Sequences that are right up to a position"
                      : first.prefix  ? "Sequences that are right throughout, by length"
                                      : "Accuracy by length",
                      first.positions, drawn);
}

}  // namespace lrnn::cli
