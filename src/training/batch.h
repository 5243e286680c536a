#pragma once
#include <torch/types.h>

#include <vector>

#include "mixers/mixer.h"
#include "tasks/task.h"

namespace lrnn::training {

// Some examples as tensors, holding the work that reaches the loss and little more. Where every
// example asks one question only those positions go through the model's last rows.
struct Batch {
  torch::Tensor input;      // int64 [B,T], or packed [1,total]
  mixers::Context context;  // matches input
  torch::Tensor target;     // int64 [rows]: one per row of the flattened logits, -1: none
  int64_t targets = 0;      // those that are not -1
};

// The examples in their order. With length 0 those of different lengths lie end to end. With
// another they are a rectangle [count,length], for devices that want equal shapes: shorter ones are
// followed by tokens without a target, which no causal model takes notice of. Where every example
// asks one question, context.read_at names the rows.
Batch make_batch(const tasks::Example* examples, int64_t count, int64_t vocabulary,
                 int64_t length = 0);
// Room for such a batch on `device`, and the batch copied there; the host need not wait for it.
Batch room_for(const Batch& batch, torch::Device device);
void send(const Batch& batch, Batch& to);
int64_t longest(const tasks::Example* examples, int64_t count);
int64_t targets_of(const tasks::Example* examples, int64_t count);

// Examples first .. first+count-1 of a split.
std::vector<tasks::Example> draw(const tasks::Task& task, uint64_t seed, tasks::Split split,
                                 Range length, int64_t first, int64_t count);

// Training examples, where the task's are longer than `longest` letters the same ones, cut, if
// every letter has an answer, and shorter ones if a word has one at its end.
std::vector<tasks::Example> draw_up_to(const tasks::Task& task, uint64_t seed, int64_t longest,
                                       int64_t first, int64_t count);

// Sum (not mean) of the cross-entropies at the targets: parts of a batch add up.
torch::Tensor loss_sum(const torch::Tensor& logits, const Batch& batch, double smoothing = 0);

// bool [rows]: the argmax over all logits is the target. False where there is none.
torch::Tensor right(const torch::Tensor& logits, const Batch& batch);

}  // namespace lrnn::training
