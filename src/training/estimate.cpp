#include "training/estimate.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "training/evaluate.h"
#include "training/head_loss.h"

namespace lrnn::training {
namespace {

// Measured with `memory_use` over the mixers of this repository. Of every number that a weight
// matrix gives out, training keeps kKept, with what norms, activations and gradients add; a forward
// alone holds kHeld. Every block adds kStream times the width, and kStates of its states per
// sequence.
constexpr double kKept = 1.75, kHeld = 1.25, kStream = 3, kStates = 1.5;
constexpr double kCheap = 0.7;      // of that, where norms and the like are made again
constexpr double kNarrow = 0.65;    // of that in bfloat16, where most of it is half as large
constexpr double kLogits = 4;       // logits, their softmax, and the gradients of both
constexpr double kTokenBytes = 40;  // of an example: input and target, drawn and as tensors
constexpr double kProgram = 170e6, kGpuProgram = 600e6;
constexpr double kSpare = 0.4, kGpuSpare = 1;  // a GPU's recording has memory of its own
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
        narrow_(config.precision == "bfloat16" ? kNarrow : 1),
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
      const double given = (how == model::Model::Recompute::kCheap ? kCheap * kKept : kKept) *
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
    const double most = gpu_ ? kTokensPerGpuForward : kTokensPerForward;
    const double tokens = std::max(s.longest, std::min(most, at_once * s.mean));
    double block = 0;
    for (const auto& width : widths_) block = std::max(block, width.block);
    const double sequences = std::max(1.0, tokens / s.mean);
    const double numbers = tokens * (narrow_ * kHeld * block + stream()) +
                           sequences * double(model_.state_size(int64_t(s.longest))) +
                           2 * double(model_.vocabulary()) * (s.one_answer ? sequences : tokens);
    return numbers * element_ + kTokenBytes * at_once * s.mean;
  }

 private:
  double stream() const { return kStream * double(model_.config().width); }
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
  double element_, narrow_;
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
  if (gpu && config.precision == "bfloat16") {
    out.weights += weights / 2;  // a narrow copy, and gradients as narrow
    out.gradients = config.accumulate > 1 ? 1.5 * weights : weights / 2;
  }
  out.batch = of.batch();
  out.evaluation = of.evaluation();
  out.spare = (gpu ? kGpuSpare : kSpare) * std::max(out.batch, out.evaluation);
  // At first the optimiser moves them to a buffer of its own, later a checkpoint has a copy.
  if (!gpu) out.spare += weights;
  out.program = gpu ? kGpuProgram : kProgram;
  return out;
}

}  // namespace lrnn::training
