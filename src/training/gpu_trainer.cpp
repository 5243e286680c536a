#include "training/gpu_trainer.h"

#include <algorithm>
#include <cmath>

#include "ops/torch.h"
#include "training/nonfinite.h"
#include "training/precision.h"
#include "training/schedule.h"

namespace lrnn::training {
namespace {

using ops::GpuAdamW;
using torch::Tensor;

// Few recordings, little padding: an eighth of the longest sequence, and a multiple of 8.
int64_t bucket_of(const tasks::Task& task) {
  const int64_t longest = task.length(tasks::Split::kTrain).hi;
  return std::max<int64_t>(8, (longest / 8 + 7) / 8 * 8);
}

ops::Gpu& loaded_gpu() {
  if (!ops::gpu()) throw Error("training on a GPU needs liblrnn_cuda.so", "use --device cuda");
  return *ops::gpu();
}

// From here copies to and from the GPU need not wait.
Tensor pinned(const Tensor& x) { return x.pin_memory(); }

}  // namespace

GpuTrainer::GpuTrainer(model::Model& model, const tasks::Task& task, const TrainConfig& config,
                       uint64_t seed, bool record)
    : Trainer(model, task, config, seed),
      gpu_(loaded_gpu()),
      record_(record),
      bucket_(bucket_of(task)) {
  // The fused attention kernels add up gradients in the order their threads come by.
  at::globalContext().setSDPUseFlash(false);
  at::globalContext().setSDPUseMemEfficient(false);
  at::globalContext().setSDPUseCuDNN(false);
  const auto options = torch::dtype(torch::kFloat64);
  host_settings_ = pinned(torch::zeros({GpuAdamW::kSettings}, options));
  host_report_ = pinned(torch::zeros({GpuAdamW::kReports}, options));
  settings_ = host_settings_.to(model.device()), report_ = host_report_.to(model.device());
  adamw_ = optimizer_.on_gpu(settings_, report_);
}

GpuTrainer::Parts GpuTrainer::make(int64_t index) const {
  const auto all = examples(index);
  Parts out;
  out.index = index;
  out.length = (longest(all.data(), config_.batch) + bucket_ - 1) / bucket_ * bucket_;
  for (int64_t part = 0; part < config_.accumulate; ++part) {
    const int64_t first = part_begin(part), last = part_begin(part + 1);
    out.parts.push_back(
        make_rectangle(&all[size_t(first)], last - first, task_.vocabulary(), out.length));
    auto& batch = out.parts.back();
    batch.input = pinned(batch.input), batch.target = pinned(batch.target);
    out.targets += batch.targets;
  }
  return out;
}

// Everything the GPU does in an update. It must not wait for the host, nor the host for it.
void GpuTrainer::work(const Step& step) {
  report_.zero_();
  optimizer_.zero_grad();
  const Tensor share = settings_[GpuAdamW::kShare].to(torch::kFloat32);
  for (const auto& part : step.parts) {
    Tensor loss;
    {
      Precision precision(config_.precision, model_.device().type());
      model::State state;
      const auto logits = model_.forward(part.input, state, part.context);
      loss = loss_sum(logits, part) * share;
      report_[GpuAdamW::kRight].add_(right(logits, part).sum());
    }
    loss.backward();
    report_[GpuAdamW::kLoss].add_(loss.detach());
  }
  optimizer_.gather();
  gpu_.adamw(adamw_);
}

void GpuTrainer::send(double lr, const Parts& parts, bool active) {
  double* const s = host_settings_.mutable_data_ptr<double>();
  optimizer_.fill_settings(lr, config_.clip, s);
  s[GpuAdamW::kShare] = 1 / double(parts.targets);
  s[GpuAdamW::kActive] = active;
  settings_.copy_(host_settings_, /*non_blocking=*/true);
}

GpuTrainer::Step& GpuTrainer::step_for(const Parts& parts) {
  auto& step = steps_[parts.length];
  if (step.parts.empty())
    for (const auto& part : parts.parts) {
      step.parts.push_back(part);
      step.parts.back().input = torch::empty_like(part.input, model_.device());
      step.parts.back().target = torch::empty_like(part.target, model_.device());
    }
  for (size_t i = 0; i < parts.parts.size(); ++i) {
    step.parts[i].input.copy_(parts.parts[i].input, true);
    step.parts[i].target.copy_(parts.parts[i].target, true);
  }
  if (record_ && !step.recording) {
    send(0, parts, false);  // rehearsals move no weight
    step.recording = gpu_.record([&] { work(step); });
    gpu_.wait();
  }
  return step;
}

Update GpuTrainer::update(int64_t step, int64_t index) {
  Parts parts = next_.index == index ? std::move(next_) : make(index);
  Update out;
  out.lr = learning_rate(config_, step), out.targets = parts.targets;
  auto& at = step_for(parts);
  send(out.lr, parts, true);
  at.recording ? at.recording->replay() : work(at);
  host_report_.copy_(report_, /*non_blocking=*/true);
  next_ = make(index + 1);
  gpu_.wait();

  const double* const r = host_report_.const_data_ptr<double>();
  out.loss = r[GpuAdamW::kLoss], out.grad_norm = r[GpuAdamW::kNorm];
  out.right = int64_t(r[GpuAdamW::kRight]);
  out.skipped = r[GpuAdamW::kApplied] == 0;
  if (!out.skipped) optimizer_.applied();
  if (out.skipped && config_.nonfinite == "stop") {
    if (std::isfinite(out.loss)) not_finite(step, "gradient", find_in_gradients(model_));
    explain(step, at);
  }
  return out;
}

// The weights are as they were: the same batch shows the same again.
void GpuTrainer::explain(int64_t step, const Step& at) {
  std::string where;
  for (const auto& part : at.parts)
    if (where.empty() || where.rfind("the loss", 0) == 0)
      where = find_in_forward(model_, part, config_.precision);
  not_finite(step, "loss", where);
}

}  // namespace lrnn::training
