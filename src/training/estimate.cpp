#include "training/estimate.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "training/evaluate.h"
#include "training/head_loss.h"
#include "training/token_losses.h"

namespace lrnn::training {
namespace {

// Of every number that a weight matrix gives out, training keeps so many, with what norms,
// activations and gradients add, and of these fewer where norms and the like are made again; in
// bfloat16 most are half as large. Every block adds so many times the width for the stream.
struct Kept {
  double numbers, cheap, narrow, stream;
};
// Measured with `memory_use` over the mixers of this repository, and on a GPU with language models
// (results/bench/lm.jsonl), where a recording gives memory back as soon as it can.
constexpr Kept kOnCpu{1.75, 0.7, 0.65, 3}, kOnGpu{1.52, 0.63, 0.5, 2};
constexpr double kHeld = 1.25;      // by a forward alone, of numbers that matrices give out
constexpr double kStates = 1.5;     // of a block's states, per sequence
constexpr double kLogits = 4;       // logits, their softmax, and the gradients of both
constexpr double kTokenBytes = 40;  // of an example: input and target, drawn and as tensors
constexpr double kProgram = 170e6, kGpuProgram = 600e6;
// A GPU's recording has memory of its own, and more than this is given back before it is made
// (ops/cuda/recording.cpp).
constexpr double kSpare = 0.4, kMostGpuSpare = double(int64_t{4} << 30);
constexpr double kScores = 3;                  // attention on a GPU: scores, softmax and a gradient
constexpr int64_t kDrawn = 64, kLongestDrawn = 100'000;

// What examples of a split look like.
struct Sequences {
  double mean = 0, longest = 0;  // tokens
  bool one_answer = true;        // at the end
};

Sequences look(const tasks::Task& task, tasks::Split split) {
  const Range length = task.length(split);
  // Windows of a text are all alike, and its data may be elsewhere.
  if (task.score() == tasks::Score::kText)
    return {.mean = double(length.hi), .longest = double(length.hi), .one_answer = false};
  // A few that are not longer than this tell how long longer ones are.
  const Range drawn = {std::min(length.lo, kLongestDrawn), std::min(length.hi, kLongestDrawn)};
  Sequences out;
  for (int64_t i = 0; i < kDrawn; ++i) {
    const auto e = task.sample(0, split, uint64_t(i), drawn);
    out.mean += double(e.input.size()) / double(kDrawn);
    out.longest = std::max(out.longest, double(e.input.size()));
    out.one_answer = out.one_answer && std::count_if(e.target.begin(), e.target.end(),
                                                     [](auto t) { return t >= 0; }) == 1;
  }
  const double scale = double(length.lo + length.hi) / double(drawn.lo + drawn.hi);
  out.mean *= scale, out.longest *= scale;
  return out;
}

// Numbers that come out of a block's matrices per token: of the mixer, and of all the block.
struct Width {
  double mixer = 0, block = 0;
};

std::vector<Width> widths_of(const model::Model& model) {
  std::vector<Width> out(size_t(model.config().layers));
  const std::string prefix = "model.layers.";
  for (const auto& item : model.named_parameters()) {
    const auto& w = item.value();
    // Not what sets the pace of a state, which weight decay leaves alone.
    if (!item.key().starts_with(prefix) || w.dim() < 2 || !model.decays(item.key())) continue;
    const double given = double(w.numel()) / double(w.size(-1));
    auto& width = out[size_t(std::stoll(item.key().substr(prefix.size())))];
    width.block += given;
    if (item.key().find(".attn.") != std::string::npos) width.mixer += given;
  }
  return out;
}

double heads_of(const Section& mixer) {
  const auto heads = mixers::resolve(mixer)["heads"];
  return heads.IsDefined() ? heads.as<double>() : 1;
}

class Estimator {
 public:
  Estimator(const model::Model& model, const tasks::Task& task, const TrainConfig& config, bool gpu)
      : model_(model),
        task_(task),
        config_(config),
        gpu_(gpu),
        element_(model.config().dtype == "float64" ? 8 : 4),
        of_(gpu ? kOnGpu : kOnCpu),
        narrow_(config.precision == "bfloat16" ? of_.narrow : 1),
        recompute_(recompute_of(config, model, gpu)),
        widths_(widths_of(model)) {}

  // Forward and backward of one part of a batch.
  double batch() const {
    const auto s = look(task_, tasks::Split::kTrain);
    const double count = std::ceil(double(config_.batch) / double(config_.accumulate));
    const double tokens = count * (gpu_ ? s.longest : s.mean);
    double numbers = kStates * count * double(model_.state_size());
    const double width = double(model_.config().width);
    double most = 0;  // of one block: all that is kept at a time where blocks are run again
    for (size_t i = 0; i < widths_.size(); ++i) {
      const bool last = i + 1 == widths_.size() && s.one_answer;
      const auto& mixer = model_.mixer(int64_t(i));
      const bool attends = mixer.state_grows();
      const double here = attends ? count * s.longest : tokens;  // attention pads
      const auto how =
          int64_t(i) < recompute_.blocks ? recompute_.what : model::Model::Recompute::kNothing;
      const double given = of_.numbers * (how == model::Model::Recompute::kCheap ? of_.cheap : 1) *
                           (last ? widths_[i].mixer : widths_[i].block);
      double block = here * (narrow_ * given + stream() + double(mixer.kept_per_token()));
      if (attends && gpu_)
        block += kScores * count * s.longest * s.longest *
                 heads_of(model_.config().mixer_of(int64_t(i)));
      if (how == model::Model::Recompute::kBlocks)
        numbers += tokens * width * (1 + narrow_), most = std::max(most, block);
      else
        numbers += block;
    }
    numbers += most + logits(s.one_answer ? count : tokens);
    return numbers * element_ + kTokenBytes * double(config_.batch) * s.mean;
  }

  // A forward without gradients: one block after the other.
  double evaluation() const {
    const auto s = look(task_, tasks::Split::kEval);
    const double at_once = std::min(double(EvaluateOptions{}.batch), double(task_.eval_samples));
    const bool text = task_.score() == tasks::Score::kText;
    const double most = double(text   ? tokens_at_once(model_.vocabulary(), gpu_)
                               : gpu_ ? kTokensPerGpuForward
                                      : kTokensPerForward);
    // A text is read in pieces, and of its logits a few rows at a time are as wide as float32.
    const double longest = text ? std::min(s.longest, double(kTokensPerPiece)) : s.longest;
    const double tokens = std::max(longest, std::min(most, at_once * s.mean));
    const double logits = text ? narrow_ : 2;
    double block = 0;
    for (const auto& width : widths_) block = std::max(block, width.block);
    const double sequences = std::max(1.0, tokens / s.mean);
    const double numbers =
        tokens * (narrow_ * kHeld * block + stream()) +
        sequences * double(model_.state_size(int64_t(s.longest))) +
        logits * double(model_.vocabulary()) * (s.one_answer ? sequences : tokens);
    return numbers * element_ + kTokenBytes * at_once * s.mean;
  }

 private:
  double stream() const { return of_.stream * double(model_.config().width); }
  // With their gradients; of a large vocabulary a chunk of them, and the head's gradient.
  double logits(double rows) const {
    const double V = double(model_.vocabulary()), D = double(model_.config().width);
    if (!has_many_logits(model_.vocabulary(), int64_t(rows))) return kLogits * V * rows;
    const double chunk =
        double(std::min<int64_t>(ops::LinearCrossEntropy::kRowsAtOnce, int64_t(rows)));
    return (gpu_ ? narrow_ : kLogits / 2) * V * chunk + 2 * V * D + 2 * D * rows;
  }

  const model::Model& model_;
  const tasks::Task& task_;
  const TrainConfig& config_;
  bool gpu_;
  double element_;
  Kept of_;
  double narrow_;
  Recomputed recompute_;
  std::vector<Width> widths_;
};

}  // namespace

MemoryEstimate estimate_memory(const model::Model& model, const tasks::Task& task,
                               const TrainConfig& config, bool gpu) {
  const Estimator of(model, task, config, gpu);
  const double weights =
      double(model.parameter_count()) * (model.config().dtype == "float64" ? 8 : 4);
  MemoryEstimate out;
  out.weights = out.gradients = weights;
  // The averages; in memory of the CPU also the copy of them that a checkpoint is written from
  // while training goes on. That of the weights is in `spare`.
  out.optimizer = (gpu ? 2 : 4) * weights;
  if (config.ema > 0) out.optimizer += 2 * weights;  // the average, and its place while it is shown
  if (gpu && config.precision == "bfloat16") {
    out.weights += weights / 2;  // a narrow copy, and gradients as narrow
    out.gradients = config.accumulate > 1 ? 1.5 * weights : weights / 2;
  }
  out.batch = of.batch();
  out.evaluation = of.evaluation();
  const double most = std::max(out.batch, out.evaluation);
  out.spare = gpu ? std::min(most, kMostGpuSpare) : kSpare * most;
  // At first the optimiser moves them to a buffer of its own, later a checkpoint has a copy.
  if (!gpu) out.spare += weights;
  out.program = gpu ? kGpuProgram : kProgram;
  return out;
}

}  // namespace lrnn::training
