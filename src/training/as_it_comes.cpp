#include <cmath>

#include "ops/torch.h"
#include "training/execution.h"
#include "training/head_loss.h"
#include "training/precision.h"

namespace lrnn::training {
namespace {

class AsItComes final : public Execution {
 public:
  AsItComes(model::Model& model, AdamW& optimizer, const TrainConfig& config)
      : model_(model), optimizer_(optimizer), config_(config) {}

  int64_t padded(int64_t) const override { return 0; }
  void prepare(Parts&) const override {}

  const std::vector<Batch>& run(const Parts& parts, Update& update,
                                const std::function<void()>&) override {
    optimizer_.zero_grad();
    for (const auto& part : parts.parts) {
      add(part, update);
      if (update.skipped) return parts.parts;
    }
    update.grad_norm = optimizer_.grad_norm();
    update.skipped = !std::isfinite(update.grad_norm);
    if (!update.skipped) optimizer_.step(update.lr, AdamW::clip(update.grad_norm, config_.clip));
    return parts.parts;
  }

 private:
  // Adds the gradient of one part to those of the others, unless its loss is not finite.
  void add(const Batch& part, Update& update) {
    torch::Tensor loss;
    {
      Precision precision(config_.precision, torch::kCPU);
      if (has_many_logits(model_, part)) {
        const auto out = head_loss(model_, part, 1 / double(update.targets));
        loss = out.loss;
        update.right += int64_t(out.right.item<double>());
      } else {
        model::State state;
        const auto logits = model_.forward(part.input, state, part.context);
        loss = loss_sum(logits, part) / double(update.targets);
        update.right += right(logits, part).sum().item<int64_t>();
      }
    }
    const double value = loss.item<double>();
    update.loss += value;
    update.skipped = !std::isfinite(value);
    if (!update.skipped) loss.backward();
  }

  model::Model& model_;
  AdamW& optimizer_;
  TrainConfig config_;
};

}  // namespace

std::unique_ptr<Execution> as_it_comes(model::Model& model, AdamW& optimizer,
                                       const TrainConfig& config) {
  return std::make_unique<AsItComes>(model, optimizer, config);
}

}  // namespace lrnn::training
