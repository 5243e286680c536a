#pragma once
#include "model/model.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "training/batch.h"

// The loss of a batch without all of its logits at once.
namespace lrnn::training {

// Whether there are so many logits that they are better never held together: 64 MB of them in
// float32, of a language model's vocabulary. Smaller ones keep to one product and one softmax.
bool has_many_logits(int64_t vocabulary, int64_t rows);
inline bool has_many_logits(const model::Model& model, const Batch& batch) {
  return has_many_logits(model.vocabulary(), batch.target.numel());
}

// share times the sum of the cross-entropies at the targets, and how many targets were hit. Called
// where Precision holds.
ops::LinearCrossEntropyResult head_loss(model::Model& model, const Batch& batch, double share);

// Row by row, for an evaluation.
ops::RowScores head_scores(model::Model& model, const Batch& batch);

}  // namespace lrnn::training
