#include "training/head_loss.h"

#include "ops/torch.h"

namespace lrnn::training {
namespace {

constexpr int64_t kLanguage = 1024;  // tokens: no task of ours that is not text has as many
constexpr int64_t kManyLogits = 1 << 24;

// The rows that the head reads, in the type of its products.
torch::Tensor rows_of(model::Model& model, const Batch& batch) {
  model::State state;
  const auto h = model.hidden(batch.input, state, batch.context);
  return ops::for_product(h).reshape({-1, h.size(-1)});
}

}  // namespace

bool has_many_logits(int64_t vocabulary, int64_t rows) {
  return vocabulary >= kLanguage && rows * vocabulary >= kManyLogits;
}

ops::LinearCrossEntropyResult head_loss(model::Model& model, const Batch& batch, double share) {
  // The weight itself, not a copy in bfloat16: its gradient stays float32.
  return ops::linear_cross_entropy({.h = rows_of(model, batch),
                                    .weight = model.head().value,
                                    .target = batch.target,
                                    .share = share});
}

ops::RowScores head_scores(model::Model& model, const Batch& batch) {
  return ops::score_rows(rows_of(model, batch), model.head().value, batch.target);
}

}  // namespace lrnn::training
