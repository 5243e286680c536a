#include "training/trainer.h"

#include <cmath>

#include "ops/torch.h"
#include "training/gpu_trainer.h"
#include "training/nonfinite.h"
#include "training/precision.h"
#include "training/schedule.h"

namespace lrnn::training {

Trainer::Trainer(model::Model& model, const tasks::Task& task, const TrainConfig& config,
                 uint64_t seed)
    : model_(model), task_(task), config_(config), seed_(seed), optimizer_(model, config) {
  check(model.vocabulary() == task.vocabulary(), "the model knows ", model.vocabulary(),
        " tokens, the task has ", task.vocabulary());
}

std::vector<tasks::Example> Trainer::examples(int64_t index) const {
  const auto split = tasks::Split::kTrain;
  return draw(task_, seed_, split, task_.length(split), index * config_.batch, config_.batch);
}

std::vector<Batch> Trainer::batches(int64_t index) const {
  const auto all = examples(index);
  std::vector<Batch> out;
  for (int64_t part = 0; part < config_.accumulate; ++part) {
    const int64_t first = part_begin(part), last = part_begin(part + 1);
    out.push_back(make_batch(&all[size_t(first)], last - first, task_.vocabulary()));
  }
  return out;
}

Update Trainer::update(int64_t step, int64_t index) {
  const auto parts = batches(index);
  Update out;
  out.lr = learning_rate(config_, step);
  for (const auto& part : parts) out.targets += part.targets;

  optimizer_.zero_grad();
  for (const auto& part : parts) {
    torch::Tensor loss;
    {
      Precision precision(config_.precision, torch::kCPU);
      model::State state;
      const auto logits = model_.forward(part.input, state, part.context);
      loss = loss_sum(logits, part) / double(out.targets);
      out.right += right(logits, part).sum().item<int64_t>();
    }
    const double value = loss.item<double>();
    out.loss += value;
    if (!std::isfinite(value)) {
      if (config_.nonfinite == "stop")
        not_finite(step, "loss", find_in_forward(model_, part, config_.precision));
      out.skipped = true;
      return out;
    }
    loss.backward();
  }

  out.grad_norm = optimizer_.grad_norm();
  if (!std::isfinite(out.grad_norm)) {
    if (config_.nonfinite == "stop") not_finite(step, "gradient", find_in_gradients(model_));
    out.skipped = true;
    return out;
  }
  optimizer_.step(out.lr, AdamW::clip(out.grad_norm, config_.clip));
  return out;
}

void Trainer::not_finite(int64_t step, const std::string& what, const std::string& where) const {
  throw Error(cat("the ", what, " is not finite at step ", step, ": first in ", where),
              "lower train.lr, set train.clip=1, or pass over such batches with "
              "train.nonfinite=skip");
}

std::unique_ptr<Trainer> make_trainer(model::Model& model, const tasks::Task& task,
                                      const TrainConfig& config, uint64_t seed) {
  if (model.device().is_cpu()) return std::make_unique<Trainer>(model, task, config, seed);
  return std::make_unique<GpuTrainer>(model, task, config, seed);
}

}  // namespace lrnn::training
