#include "ops/torch.h"
#include "training/precision.h"
#include "training/trainer.h"

namespace lrnn::training {
namespace {

bool finite(const torch::Tensor& x) { return x.isfinite().all().item<bool>(); }

}  // namespace

std::string find_in_forward(model::Model& model, const Batch& batch, const std::string& precision) {
  torch::NoGradGuard no_gradients;
  for (const auto& item : model.named_parameters())
    if (!finite(item.value())) return "the weight " + item.key();

  // The same model cut off after its first blocks: head and norm pass on what is not finite.
  auto config = model.config();
  const int64_t layers = config.layers;
  for (config.layers = 1; config.layers <= layers; ++config.layers) {
    const auto first = model::Model::blank(config, model.vocabulary());
    first->to(model.device());
    const auto weights = model.named_parameters();
    for (auto& item : first->named_parameters()) item.value().copy_(weights[item.key()]);
    Precision guard(precision, model.device().type());
    model::State state;
    if (!finite(first->forward(batch.input, state, batch.context)))
      return cat("the output of model.layers.", config.layers - 1);
  }
  return "the loss, from finite logits";
}

std::string find_in_gradients(const model::Model& model) {
  const auto parameters = model.named_parameters();
  std::string nearest;
  int64_t count = 0;
  for (const auto& item : parameters) {
    const auto& grad = item.value().grad();
    if (!grad.defined() || finite(grad)) continue;
    nearest = item.key();
    ++count;
  }
  return cat(nearest, count > 1 ? cat(" and ", count - 1, " before it") : "");
}

}  // namespace lrnn::training
