#pragma once
#include "base/config.h"

namespace lrnn::training {

// How a model is trained. The defaults are those of the published state-tracking runs.
struct TrainConfig {
  int64_t steps = 20000, batch = 256, accumulate = 1;
  double lr = 1e-3;
  int64_t warmup = 2000;
  double grow_at = 0;
  std::string schedule = "cosine";
  double lr_floor = 1e-3;
  double weight_decay = 0, tap_decay = 0;
  std::vector<double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double clip = 0;
  double label_smoothing = 0;
  double ema = 0;
  double stop_at = 0;
  std::string precision = "float32";
  std::string recompute = "auto";
  int64_t recompute_blocks = 0;
  std::string nonfinite = "stop";
  int64_t eval_every = 200, validate = 1024, checkpoint_every = 1000, log_every = 50, keep = 3;
  int64_t threads = 0;

  template <class Visit> void fields(Visit&& visit) {
    visit("steps", steps, "optimiser updates", at_least(1));
    visit("batch", batch, "sequences per update", at_least(1));
    visit("accumulate", accumulate, "the batch is worked through in this many parts", at_least(1));
    visit("lr", lr, "largest learning rate", above(0));
    visit("warmup", warmup, "updates over which the rate rises linearly from 0", at_least(0));
    visit("grow_at", grow_at,
          "words begin with 2 letters (or the shortest of training, where a task asks at the end "
          "of a word only) and become a quarter longer, up to the length of training, whenever "
          "this share of the letters of 50 batches was answered right, and half as long when less "
          "than half was: what a letter does is learnt from short words; such as 0.98; 0: whole "
          "words from the start. Not for texts",
          between(0, 1));
    visit("schedule", schedule, "what the rate does after the warm-up", {"cosine", "constant"});
    visit("lr_floor", lr_floor, "the cosine ends at this fraction of lr", between(0, 1));
    visit("weight_decay", weight_decay, "decoupled decay (AdamW)", at_least(0));
    visit(
        "tap_decay", tap_decay,
        "every update brings the taps of short convolutions, but those of the present token, this "
        "times the rate closer to 0, and to exactly 0 where the loss does not hold them; such as "
        "0.5",
        at_least(0));
    visit("betas", betas, "AdamW's two averaging factors", from_to_below(0, 1));
    visit("eps", eps, "AdamW's epsilon", above(0));
    visit("clip", clip, "largest norm of the gradient; 0: no clipping", at_least(0));
    visit("label_smoothing", label_smoothing,
          "the targets are this part of all answers and the rest of the right one: logits come to "
          "rest at a finite distance, so the loss goes on asking for exactness where words are "
          "answered right; such as 0.1. Not for language models",
          from_to_below(0, 1));
    visit("ema", ema,
          "evaluated and kept is a running average of the weights with this factor, such as 0.999; "
          "training goes on from the weights themselves; 0: no average",
          from_to_below(0, 1));
    visit("precision", precision, "of the matrix products; weights are float32",
          {"float32", "bfloat16"});
    visit("recompute", recompute,
          "what backward makes again instead of keeping it, for less memory and the same bits: "
          "nothing; norms, convolutions and SiLU products; or all of a block, a third more work. "
          "auto: cheap for a language model on a GPU, else none",
          {"auto", "none", "cheap", "block"});
    visit("recompute_blocks", recompute_blocks,
          "in how many blocks, from the first on: in fewer is faster and takes more memory; 0: in "
          "all, where recompute is auto in half of them",
          at_least(0));
    visit("nonfinite", nonfinite,
          "a loss or gradient that is not finite: end the run or skip the batch", {"stop", "skip"});
    visit("stop_at", stop_at, "an evaluation with this accuracy ends the run; 0: none does",
          between(0, 1));
    visit("eval_every", eval_every, "updates between evaluations; 0: only at the end", at_least(0));
    visit(
        "validate", validate,
        "sequences of a validation set beside the test's, no more than those, of the same lengths: "
        "the best checkpoint is chosen by it; 0: none, chosen by the test. Texts have none",
        at_least(0));
    visit("checkpoint_every", checkpoint_every, "updates between checkpoints; 0: only at the end",
          at_least(0));
    visit("log_every", log_every, "updates between lines of metrics.jsonl", at_least(1));
    visit("keep", keep, "checkpoints kept, beside the best", at_least(1));
    visit("threads", threads, "CPU threads; 0: as many as the machine has, 1 for tiny models",
          at_least(0));
  }
  void check(const Section& at) const;

  // Whether a run that has come so far, with such a best evaluation, is over.
  bool ended(int64_t step, double best_accuracy) const {
    return step >= steps || (stop_at > 0 && best_accuracy >= stop_at);
  }
};

// The learning rate of update `step`, counted from 0. It rises linearly from 0 over `warmup`
// updates (so the very first one moves only the moments), then stays, or follows a cosine down to
// lr_floor lr at `steps` and rests there.
double learning_rate(const TrainConfig& train, int64_t step);

}  // namespace lrnn::training
