#include "training/head_loss.h"

#include <algorithm>

#include "ops/torch.h"

namespace lrnn::training {
namespace {

constexpr int64_t kManyLogits = 1 << 24;

// The rows that the head reads, in the type of its products.
torch::Tensor rows_of(model::Model& model, const Batch& batch) {
  model::State state;
  const auto h = model.hidden(batch.input, state, batch.context);
  return ops::for_product(h).reshape({-1, h.size(-1)});
}

}  // namespace

bool is_language(int64_t vocabulary) { return vocabulary >= 1024; }

bool has_many_logits(int64_t vocabulary, int64_t rows) {
  return is_language(vocabulary) && rows * vocabulary >= kManyLogits;
}

Recomputed recompute_of(const TrainConfig& config, const model::Model& model, bool gpu) {
  using Recompute = model::Model::Recompute;
  const int64_t all = model.config().layers, wanted = config.recompute_blocks;
  const int64_t blocks = wanted > 0 ? std::min(wanted, all) : all;
  if (config.recompute == "block") return {Recompute::kBlocks, blocks};
  if (config.recompute == "cheap") return {Recompute::kCheap, blocks};
  if (config.recompute == "none" || !gpu || !is_language(model.vocabulary())) return {};
  // Half of the memory that can be saved, for half of the time that it takes.
  return {Recompute::kCheap, wanted > 0 ? blocks : (all + 1) / 2};
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
