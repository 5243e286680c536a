#include <cmath>

#include "ops/torch.h"
#include "training/execution.h"
#include "training/head_loss.h"
#include "training/precision.h"

// An update op by op, in batches as they come: on CPUs, and on GPUs where nothing is recorded.
namespace lrnn::training {
namespace {

class AsItComes final : public Execution {
 public:
  AsItComes(model::Model& model, AdamW& optimizer, const TrainConfig& config, const Ranks& ranks)
      : model_(model), optimizer_(optimizer), config_(config), ranks_(ranks) {}

  int64_t padded(int64_t) const override { return 0; }
  void prepare(Parts&) const override {}

  const std::vector<Batch>& run(const Parts& parts, Update& update,
                                const std::function<void()>&) override {
    optimizer_.zero_grad();
    Parted done;
    for (const auto& part : parts.parts) {
      add(part, update.targets, done);
      if (!std::isfinite(done.losses.back()) && ranks_.count() == 1) break;
    }
    done.losses.resize(parts.parts.size());
    sum_up(done, update);
    if (update.skipped) return parts.parts;
    optimizer_.exchange();
    update.grad_norm = optimizer_.grad_norm();
    update.skipped = !std::isfinite(update.grad_norm);
    if (!update.skipped) optimizer_.step(update.lr, AdamW::clip(update.grad_norm, config_.clip));
    return parts.parts;
  }

 private:
  // What the parts of this rank said.
  struct Parted {
    std::vector<double> losses = {};
    int64_t right = 0;
  };

  // Adds the gradient of one part to those of the others, unless its loss is not finite.
  void add(const Batch& part, int64_t targets, Parted& done) {
    torch::Tensor loss;
    {
      Precision precision(config_.precision, torch::kCPU);
      if (has_many_logits(model_, part)) {
        const auto out = head_loss(model_, part, 1 / double(targets));
        loss = out.loss;
        done.right += int64_t(out.right.item<double>());
      } else {
        model::State state;
        const auto logits = model_.forward(part.input, state, part.context);
        loss = loss_sum(logits, part, config_.label_smoothing) / double(targets);
        done.right += right(logits, part).sum().item<int64_t>();
      }
    }
    const double value = loss.item<double>();
    done.losses.push_back(value);
    if (std::isfinite(value)) loss.backward();
  }

  // In the order of the parts of the batch, whoever worked on them.
  void sum_up(const Parted& done, Update& update) const {
    std::vector<double> mine = done.losses;
    mine.push_back(double(done.right));
    const auto said = ranks_.numbers(mine);
    for (size_t part = 0; part < done.losses.size(); ++part)
      for (const auto& rank : said) update.loss += rank[part];
    for (const auto& rank : said) update.right += int64_t(rank.back());
    update.skipped = !std::isfinite(update.loss);
  }

  model::Model& model_;
  AdamW& optimizer_;
  TrainConfig config_;
  Ranks ranks_;
};

}  // namespace

std::unique_ptr<Execution> as_it_comes(model::Model& model, AdamW& optimizer,
                                       const TrainConfig& config, const Ranks& ranks) {
  return std::make_unique<AsItComes>(model, optimizer, config, ranks);
}

}  // namespace lrnn::training
