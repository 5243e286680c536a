#pragma once
#include "model/model.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "training/batch.h"
#include "training/config.h"

// What is done otherwise for a language's vocabulary: the loss of a batch without all of its logits
// at once, and less that is kept for backward.
namespace lrnn::training {

// Whether tokens are a language's: no task of ours that is not text has as many.
bool is_language(int64_t vocabulary);

// Whether there are so many logits that they are better never held together: 64 MB of them in
// float32, of a language model's vocabulary. Smaller ones keep to one product and one softmax.
bool has_many_logits(int64_t vocabulary, int64_t rows);
inline bool has_many_logits(const model::Model& model, const Batch& batch) {
  return has_many_logits(model.vocabulary(), batch.target.numel());
}

// What train.recompute and train.recompute_blocks mean for a model.
struct Recomputed {
  model::Model::Recompute what = model::Model::Recompute::kNothing;
  int64_t blocks = 0;  // the first ones
};
Recomputed recompute_of(const TrainConfig& config, const model::Model& model, bool gpu);

// share times the sum of the cross-entropies at the targets, and how many targets were hit. Called
// where Precision holds.
ops::LinearCrossEntropyResult head_loss(model::Model& model, const Batch& batch, double share);

// Row by row, for an evaluation.
ops::RowScores head_scores(model::Model& model, const Batch& batch);

}  // namespace lrnn::training
