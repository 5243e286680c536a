#include "training/gpu_trainer.h"

#include <algorithm>
#include <cmath>
#include <future>

#include "ops/torch.h"
#include "training/nonfinite.h"
#include "training/precision.h"
#include "training/schedule.h"

namespace lrnn::training {
namespace {

using ops::GpuAdamW;
using torch::Tensor;

// Few recordings, little padding: an eighth of the longest sequence, and a multiple of 8. Where all
// are equally long there is one recording anyway.
int64_t bucket_of(const tasks::Task& task) {
  const Range length = task.length(tasks::Split::kTrain);
  return length.lo == length.hi ? 1 : std::max<int64_t>(8, (length.hi / 8 + 7) / 8 * 8);
}

ops::Gpu& loaded_gpu() {
  if (!ops::gpu()) throw Error("training on a GPU needs liblrnn_cuda.so", "use --device cuda");
  return *ops::gpu();
}

// Examples are pure functions of their numbers: large batches are drawn by several threads, so that
// the GPU need not wait for one.
constexpr int64_t kTokensPerThread = 32768;
constexpr int64_t kMostThreads = 4;

// From memory of this kind copies to and from the GPU need not wait.
Tensor pinned(int64_t size, torch::Dtype dtype) {
  return torch::empty({size}, torch::dtype(dtype).pinned_memory(true));
}

std::vector<Tensor*> tensors_of(Batch& batch) {
  std::vector<Tensor*> out = {&batch.input, &batch.target};
  if (batch.context.only.defined()) out.push_back(&batch.context.only);
  return out;
}

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
  host_report_ = pinned(GpuAdamW::kReports, torch::kFloat64);
  report_ = host_report_.to(model.device());
  adamw_ = optimizer_.on_gpu({}, report_);
}

std::vector<tasks::Example> GpuTrainer::drawn(int64_t index) const {
  const auto split = tasks::Split::kTrain;
  const Range length = task_.length(split);
  const int64_t threads =
      std::clamp<int64_t>(config_.batch * length.hi / kTokensPerThread, 1, kMostThreads);
  if (threads == 1) return examples(index);
  std::vector<std::future<std::vector<tasks::Example>>> shares;
  for (int64_t i = 0; i < threads; ++i) {
    const int64_t begin = i * config_.batch / threads, end = (i + 1) * config_.batch / threads;
    shares.push_back(std::async(std::launch::async, [=, this] {
      return draw(task_, seed_, split, length, index * config_.batch + begin, end - begin);
    }));
  }
  std::vector<tasks::Example> out;
  out.reserve(size_t(config_.batch));
  for (auto& share : shares)
    for (auto& example : share.get()) out.push_back(std::move(example));
  return out;
}

GpuTrainer::Parts GpuTrainer::make(int64_t index) const {
  const auto all = drawn(index);
  Parts out;
  out.index = index;
  out.length = (longest(all.data(), config_.batch) + bucket_ - 1) / bucket_ * bucket_;
  for (int64_t part = 0; part < config_.accumulate; ++part) {
    const int64_t first = part_begin(part), last = part_begin(part + 1);
    out.parts.push_back(
        make_rectangle(&all[size_t(first)], last - first, task_.vocabulary(), out.length));
    const auto& batch = out.parts.back();
    out.only.push_back(batch.context.only.defined());
    out.targets += batch.targets;
  }
  int64_t size = GpuAdamW::kSettings;
  for (auto& batch : out.parts)
    for (const Tensor* x : tensors_of(batch)) size += x->numel();
  out.message = pinned(size, torch::kInt64);
  lay_out(out.message, out.parts, /*fill=*/true);
  return out;
}

// A message is the settings, then the tensors of all parts, which become views of it.
void GpuTrainer::lay_out(const Tensor& message, std::vector<Batch>& parts, bool fill) {
  int64_t at = GpuAdamW::kSettings;
  for (auto& batch : parts)
    for (Tensor* x : tensors_of(batch)) {
      const Tensor place = message.narrow(0, at, x->numel()).view(x->sizes());
      if (fill) place.copy_(*x);
      *x = place, at += x->numel();
    }
}

// Everything the GPU does in an update. It must not wait for the host, nor the host for it.
void GpuTrainer::work(const Step& step) {
  report_.zero_();
  optimizer_.drop_grads();
  const bool narrow = config_.precision == "bfloat16";
  const ops::CastWeights::Copies none;
  const ops::CastWeights weights(narrow ? optimizer_.cast_copies(torch::kBFloat16) : none);
  adamw_.settings = step.message.narrow(0, 0, GpuAdamW::kSettings).view(torch::kFloat64);
  const Tensor share = adamw_.settings[GpuAdamW::kShare];
  for (const auto& part : step.parts) {
    Tensor rows;
    {
      Precision precision(config_.precision, model_.device().type());
      model::State state;
      const auto logits = model_.forward(part.input, state, part.context);
      rows = logits.view({-1, logits.size(-1)});
    }
    const Tensor drows = gpu_.cross_entropy(rows.detach(), part.target, share, report_);
    rows.backward(drows);
  }
  gpu_.adamw(adamw_, optimizer_.fetch_grads());
}

// One copy: each costs the host as much as the launch of the whole update.
void GpuTrainer::send(double lr, const Parts& parts, bool active, Step& step) {
  double* const s = static_cast<double*>(parts.message.mutable_data_ptr());
  optimizer_.fill_settings(lr, config_.clip, s);
  s[GpuAdamW::kShare] = 1 / double(parts.targets);
  s[GpuAdamW::kActive] = active;
  step.message.copy_(parts.message, /*non_blocking=*/true);
}

GpuTrainer::Step& GpuTrainer::step_for(const Parts& parts) {
  auto& step = steps_[{parts.length, parts.only}];
  if (step.parts.empty()) {
    step.message = torch::empty_like(parts.message, model_.device());
    step.parts = parts.parts;
    lay_out(step.message, step.parts, /*fill=*/false);
  }
  if (record_ && !step.recording) {
    send(0, parts, false, step);             // rehearsals move no weight
    const ops::Recording* beside = nullptr;  // only one of them runs at a time
    for (const auto& [length, other] : steps_)
      if (other.recording) beside = other.recording.get();
    step.recording = gpu_.record([&] { work(step); }, beside);
    gpu_.wait();
  }
  return step;
}

Update GpuTrainer::update(int64_t step, int64_t index) {
  Parts parts = next_.index == index ? std::move(next_) : make(index);
  Update out;
  out.lr = learning_rate(config_, step), out.targets = parts.targets;
  auto& at = step_for(parts);
  send(out.lr, parts, true, at);
  if (at.recording) kernels_ = at.recording->size();
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
