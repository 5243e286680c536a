#include <optional>

#include "ops/torch.h"
#include "training/execution.h"
#include "training/precision.h"
#include "training/recordings.h"

namespace lrnn::training {
namespace {

using ops::GpuAdamW;
using torch::Tensor;

ops::Gpu& loaded_gpu() {
  if (!ops::gpu()) throw Error("training on a GPU needs liblrnn_cuda.so", "use --device cuda");
  return *ops::gpu();
}

// From memory of this kind copies to and from the GPU need not wait.
Tensor pinned(int64_t size, torch::Dtype dtype) {
  return torch::empty({size}, torch::dtype(dtype).pinned_memory(true));
}

std::vector<Tensor*> tensors_of(Batch& batch) {
  std::vector<Tensor*> out = {&batch.input, &batch.target};
  if (batch.context.read_at.defined()) out.push_back(&batch.context.read_at);
  return out;
}

// A message is the settings, then the tensors of all parts, which become views of it.
void lay_out(const Tensor& message, std::vector<Batch>& parts, bool fill) {
  int64_t at = GpuAdamW::kSettings;
  for (auto& batch : parts)
    for (Tensor* x : tensors_of(batch)) {
      const Tensor place = message.narrow(0, at, x->numel()).view(x->sizes());
      if (fill) place.copy_(*x);
      *x = place, at += x->numel();
    }
}

// The host copies tokens in, makes the next batch while the GPU works, and reads four numbers.
class Recorded final : public Execution {
 public:
  Recorded(model::Model& model, AdamW& optimizer, const TrainConfig& config, int64_t bucket,
           bool record)
      : model_(model),
        optimizer_(optimizer),
        config_(config),
        bucket_(bucket),
        gpu_(loaded_gpu()),
        steps_(record) {
    // The fused attention kernels add up gradients in the order their threads come by.
    at::globalContext().setSDPUseFlash(false);
    at::globalContext().setSDPUseMemEfficient(false);
    at::globalContext().setSDPUseCuDNN(false);
    host_report_ = pinned(GpuAdamW::kReports, torch::kFloat64);
    report_ = host_report_.to(model.device());
    adamw_ = optimizer_.on_gpu({}, report_);
  }

  int64_t padded(int64_t longest) const override {
    return (longest + bucket_ - 1) / bucket_ * bucket_;
  }

  void prepare(Parts& parts) const override {
    int64_t size = GpuAdamW::kSettings;
    for (auto& batch : parts.parts)
      for (const Tensor* x : tensors_of(batch)) size += x->numel();
    parts.message = pinned(size, torch::kInt64);
    lay_out(parts.message, parts.parts, /*fill=*/true);
  }

  const std::vector<Batch>& run(const Parts& parts, Update& update,
                                const std::function<void()>& meanwhile) override {
    auto& step = step_for(parts);
    send(update.lr, parts, true, step);
    if (step.recording) kernels_ = step.recording->size();
    steps_.run(step, [&] { work(step); });
    host_report_.copy_(report_, /*non_blocking=*/true);
    meanwhile();
    gpu_.wait();

    const double* const r = host_report_.const_data_ptr<double>();
    update.loss = r[GpuAdamW::kLoss], update.grad_norm = r[GpuAdamW::kNorm];
    update.right = int64_t(r[GpuAdamW::kRight]);
    update.skipped = r[GpuAdamW::kApplied] == 0;
    if (!update.skipped) optimizer_.applied();
    return step.parts;
  }

  int64_t kernels() const override { return kernels_; }

 private:
  struct Step {
    Tensor message;            // on the GPU
    std::vector<Batch> parts;  // views of it: what the recording reads
  };
  // The length, and which parts have Context::read_at; all else is the same in every batch.
  using Shape = std::pair<int64_t, std::vector<bool>>;
  using Steps = Recordings<Shape, Step>;

  Steps::Entry& step_for(const Parts& parts) {
    Shape shape{parts.parts[0].input.size(1), {}};
    for (const auto& part : parts.parts) shape.second.push_back(part.context.read_at.defined());
    auto& step = steps_.at(shape);
    if (step.parts.empty()) {
      step.message = torch::empty_like(parts.message, model_.device());
      step.parts = parts.parts;
      lay_out(step.message, step.parts, /*fill=*/false);
    }
    if (steps_.wanted(step)) {
      send(0, parts, false, step);  // rehearsals move no weight
      steps_.record(step, [&] { work(step); });
      gpu_.wait();
    }
    return step;
  }

  // One copy: each costs the host as much as the launch of the whole update.
  void send(double lr, const Parts& parts, bool active, Step& step) {
    double* const s = static_cast<double*>(parts.message.mutable_data_ptr());
    optimizer_.fill_settings(lr, config_.clip, s);
    s[GpuAdamW::kShare] = 1 / double(parts.targets);
    s[GpuAdamW::kActive] = active;
    step.message.copy_(parts.message, /*non_blocking=*/true);
  }

  // Everything the GPU does in an update. It must not wait for the host, nor the host for it.
  void work(const Step& step) {
    report_.zero_();
    optimizer_.drop_grads();
    std::optional<AdamW::Copies> copies;
    if (config_.precision == "bfloat16") copies.emplace(optimizer_, torch::kBFloat16);
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

  model::Model& model_;
  AdamW& optimizer_;
  TrainConfig config_;
  int64_t bucket_;
  ops::Gpu& gpu_;
  int64_t kernels_ = 0;
  Tensor report_, host_report_;
  GpuAdamW adamw_;
  Steps steps_;
};

}  // namespace

std::unique_ptr<Execution> recorded(model::Model& model, AdamW& optimizer,
                                    const TrainConfig& config, int64_t bucket, bool record) {
  return std::make_unique<Recorded>(model, optimizer, config, bucket, record);
}

}  // namespace lrnn::training
