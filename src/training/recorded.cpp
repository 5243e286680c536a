#include <optional>
#include <tuple>

#include "ops/torch.h"
#include "training/execution.h"
#include "training/head_loss.h"
#include "training/precision.h"
#include "training/recordings.h"

// An update on a GPU as a recording of its shape, replayed.
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

int64_t size_of(Batch& batch) {
  int64_t size = 0;
  for (const Tensor* x : tensors_of(batch)) size += x->numel();
  return size;
}

// The tensors of a part become views of `room`.
void lay_out(const Tensor& room, Batch& batch, bool fill) {
  int64_t at = 0;
  for (Tensor* x : tensors_of(batch)) {
    const Tensor place = room.narrow(0, at, x->numel()).view(x->sizes());
    if (fill) place.copy_(*x);
    *x = place, at += x->numel();
  }
}

// The same numbers without a claim to their memory.
Tensor borrowed(const Tensor& x) {
  return x.defined() ? torch::from_blob(x.data_ptr(), x.sizes(), x.strides(), x.options()) : x;
}

// The host copies tokens in, makes the next batch while the GPU works, and reads four numbers. A
// batch of one part is one recording, from the tokens to the new weights. One of several is a
// recording of a part, which adds to the gradients in float32, replayed for each, and one of the
// update. Several ranks have recordings of parts; their messages and what comes between them is
// launched as it comes.
class Recorded final : public Execution {
 public:
  Recorded(model::Model& model, AdamW& optimizer, const TrainConfig& config, const Ranks& ranks,
           int64_t bucket, bool record)
      : model_(model),
        optimizer_(optimizer),
        config_(config),
        ranks_(ranks),
        bucket_(bucket),
        gpu_(loaded_gpu()),
        steps_(record),
        parts_(record),
        record_(record),
        updates_(record) {
    // The fused attention kernels add up gradients in the order their threads come by.
    at::globalContext().setSDPUseFlash(false);
    at::globalContext().setSDPUseMemEfficient(false);
    at::globalContext().setSDPUseCuDNN(false);
    host_report_ = pinned(GpuAdamW::kReports, torch::kFloat64);
    report_ = host_report_.to(model.device());
    settings_ = torch::zeros({GpuAdamW::kSettings}, report_.options());
    adamw_ = optimizer_.on_gpu({}, report_);
    if (adamw_.squares.defined()) sums_ = optimizer_.sums();
  }

  int64_t padded(int64_t longest) const override {
    return (longest + bucket_ - 1) / bucket_ * bucket_;
  }

  // The settings, then the tensors of all parts.
  void prepare(Parts& parts) const override {
    int64_t at = GpuAdamW::kSettings, size = at;
    for (auto& batch : parts.parts) size += size_of(batch);
    parts.message = pinned(size, torch::kInt64);
    for (auto& batch : parts.parts) {
      const int64_t own = size_of(batch);
      lay_out(parts.message.narrow(0, at, own), batch, /*fill=*/true);
      at += own;
    }
  }

  const std::vector<Batch>& run(const Parts& parts, Update& update,
                                const std::function<void()>& meanwhile) override {
    kernels_ = 0;
    if (forget_) steps_.clear(), parts_.clear(), shown_ = nullptr, forget_ = false;
    const bool several = ranks_.count() > 1;
    several || parts.parts.size() > 1 ? part_by_part(parts, update.lr) : at_once(parts, update.lr);
    host_report_.copy_(report_, /*non_blocking=*/true);
    meanwhile();
    gpu_.wait();

    const double* const r = host_report_.const_data_ptr<double>();
    update.loss = r[GpuAdamW::kLoss], update.grad_norm = r[GpuAdamW::kNorm];
    update.right = int64_t(r[GpuAdamW::kRight]);
    update.skipped = r[GpuAdamW::kApplied] == 0;
    if (!update.skipped) optimizer_.applied();
    // Somebody will look for the reason.
    computed_.clear();
    for (const auto& part : parts.parts)
      if (update.skipped) training::send(part, computed_.emplace_back(room_for(part, device())));
    return computed_;
  }

  // Growing words have many lengths, each a quarter longer than the one before, and the blocks of
  // one are too small for the next: together they would hold about five times that of the longest.
  // The gradients of the last update lie there, so it stays until the next one begins.
  void forget_lengths() override { forget_ = true; }

  int64_t kernels() const override { return kernels_; }
  int64_t recordings() const override { return steps_.size() + parts_.size(); }

 private:
  struct Step {
    Tensor message;                           // on the GPU
    Batch part;                               // views of it: what the recording reads
    std::vector<ops::GpuGradient> gradients;  // of a batch of one part, where they are
  };
  struct Nothing {};
  // Sequences, their length, and whether there is Context::read_at.
  using Shape = std::tuple<int64_t, int64_t, bool>;
  using Steps = Recordings<Shape, Step>;

  torch::Device device() const { return model_.device(); }
  static Shape shape_of(const Batch& part) {
    return {part.input.size(0), part.input.size(1), part.context.read_at.defined()};
  }
  // The recording's own memory for such a part, `before` words behind its beginning.
  void make_room(Step& step, const Batch& part, int64_t before) const {
    if (step.message.defined()) return;
    step.part = part;
    const int64_t size = size_of(step.part);
    step.message =
        torch::empty({before + size}, torch::TensorOptions(device()).dtype(torch::kInt64));
    lay_out(step.message.narrow(0, before, size), step.part, /*fill=*/false);
  }
  template <class All, class Entry, class Work> void run(All& all, Entry& entry, const Work& work) {
    if (entry.recording) kernels_ += entry.recording->size();
    all.run(entry, work);
  }

  // ------------------------------------------------------------------------------- one part

  void at_once(const Parts& parts, double lr) {
    auto& step = steps_.at(shape_of(parts.parts[0]));
    make_room(step, parts.parts[0], GpuAdamW::kSettings);
    const auto work = [&] { make_update(step); };
    if (steps_.wanted(step)) {
      // Rehearsals move no weight.
      step.message.copy_(filled(parts, 0, false), /*non_blocking=*/true);
      steps_.record(step, work);
      gpu_.wait();
    }
    // One copy: each costs the host as much as the launch of the whole update.
    step.message.copy_(filled(parts, lr, true), /*non_blocking=*/true);
    run(steps_, step, work);
    if (record_ && shown_ == &step) return;
    optimizer_.show_grads(step.gradients), shown_ = &step;
    if (!record_) step.gradients.clear();
  }

  const Tensor& filled(const Parts& parts, double lr, bool active) const {
    double* const s = static_cast<double*>(parts.message.mutable_data_ptr());
    optimizer_.fill_settings(lr, config_.clip, s);
    s[GpuAdamW::kShare] = 1 / double(parts.targets);
    s[GpuAdamW::kActive] = active;
    return parts.message;
  }

  // Everything the GPU does in an update. It must not wait for the host, nor the host for it.
  void make_update(Step& step) {
    report_.zero_();
    adamw_.settings = step.message.narrow(0, 0, GpuAdamW::kSettings).view(torch::kFloat64);
    differentiate(step.part);
    step.gradients = optimizer_.fetch_grads();
    gpu_.adamw(adamw_, step.gradients);
    shrink_taps();
    // A recording keeps the memory, until the next one is replayed, and others may use it as well.
    if (record_)
      for (auto& g : step.gradients) g.wide = borrowed(g.wide), g.narrow = borrowed(g.narrow);
  }

  // ------------------------------------------------------------------------------- several

  void part_by_part(const Parts& parts, double lr) {
    adamw_.settings = settings_;
    for (const auto& part : parts.parts) {  // all recordings first: rehearsals leave gradients
      auto& step = parts_.at(shape_of(part));
      make_room(step, part, 0);
      if (!parts_.wanted(step)) continue;
      send_settings(parts, 0, false), send(part, parts, step);
      parts_.record(step, [&] { add_part(step); });
      gpu_.wait();
    }
    auto& update = updates_.at(0);
    const auto work = [&] { update_alone(); };
    const bool alone = ranks_.count() == 1;
    if (alone && updates_.wanted(update)) {
      send_settings(parts, 0, false);
      updates_.record(update, work);
      gpu_.wait();
    }
    report_.zero_(), optimizer_.zero_grad();
    send_settings(parts, lr, true);
    for (const auto& part : parts.parts) {
      auto& step = parts_.at(shape_of(part));
      send(part, parts, step);
      run(parts_, step, [&] { add_part(step); });
    }
    if (!record_) optimizer_.show_sums();
    alone ? run(updates_, update, work) : update_together();
  }

  void send_settings(const Parts& parts, double lr, bool active) {
    settings_.copy_(
        filled(parts, lr, active).narrow(0, 0, GpuAdamW::kSettings).view(torch::kFloat64),
        /*non_blocking=*/true);
  }
  // A part lies in one piece of the message, from its input on.
  static void send(const Batch& part, const Parts& parts, Step& step) {
    const int64_t at = part.input.storage_offset() - parts.message.storage_offset();
    step.message.copy_(parts.message.narrow(0, at, step.message.numel()), /*non_blocking=*/true);
  }

  // Backward leaves the gradients of matrices in bfloat16; their sums are float32.
  void add_part(const Step& step) {
    differentiate(step.part);
    optimizer_.add_to_sums(optimizer_.fetch_grads());
  }
  void update_alone() {
    optimizer_.squares(adamw_.squares);
    gpu_.adamw(adamw_, sums_);
    shrink_taps();
  }

  // Everybody's gradients, losses and hits are added up in the order of the ranks, and each rank
  // makes the update of its slice. All know the norm and the loss of all: they skip the same
  // batches.
  void update_together() {
    static_assert(GpuAdamW::kLoss == 0 && GpuAdamW::kRight == 1);
    constexpr int64_t kAdded = 2;
    const int64_t pieces = optimizer_.pieces_of_slice();
    optimizer_.exchange();
    const Tensor mine = torch::empty({kAdded + pieces}, report_.options());
    const Tensor added = report_.narrow(0, 0, kAdded);
    mine.narrow(0, 0, kAdded).copy_(added);
    optimizer_.squares(mine.narrow(0, kAdded, pieces));
    const Tensor all = ranks_.all(mine);
    added.copy_(all[0].narrow(0, 0, kAdded));
    for (int64_t r = 1; r < ranks_.count(); ++r) added.add_(all[r].narrow(0, 0, kAdded));
    adamw_.squares.view({ranks_.count(), pieces}).copy_(all.narrow(1, kAdded, pieces));
    gpu_.adamw(adamw_, sums_);
    optimizer_.share();
    shrink_taps();
  }

  // ------------------------------------------------------------------------------- both

  // Nothing where the update was skipped, or rehearsed.
  void shrink_taps() {
    if (config_.tap_decay > 0)
      optimizer_.shrink_taps(adamw_.settings[GpuAdamW::kRate] * report_[GpuAdamW::kApplied]);
  }

  // Forward, loss and backward of a part. The gradients are where backward leaves them, loss and
  // hits are added to the report.
  void differentiate(const Batch& part) {
    optimizer_.drop_grads();
    std::optional<AdamW::Copies> copies;
    if (config_.precision == "bfloat16") copies.emplace(optimizer_, torch::kBFloat16);
    const Tensor share = adamw_.settings[GpuAdamW::kShare];
    if (has_many_logits(model_, part)) {
      ops::LinearCrossEntropyResult out;
      {
        Precision precision(config_.precision, device().type());
        out = head_loss(model_, part, 1);
      }
      const Tensor loss = out.loss.detach().to(torch::kFloat64) * share;
      report_[GpuAdamW::kLoss].add_(loss), report_[GpuAdamW::kRight].add_(out.right.detach());
      out.loss.backward(share.to(out.loss.scalar_type()));
      return;
    }
    Tensor rows;
    {
      Precision precision(config_.precision, device().type());
      model::State state;
      const auto logits = model_.forward(part.input, state, part.context);
      rows = logits.view({-1, logits.size(-1)});
    }
    rows.backward(
        gpu_.cross_entropy(rows.detach(), part.target, config_.label_smoothing, share, report_));
  }

  model::Model& model_;
  AdamW& optimizer_;
  TrainConfig config_;
  Ranks ranks_;
  int64_t bucket_;
  ops::Gpu& gpu_;
  int64_t kernels_ = 0;
  Tensor report_, host_report_, settings_;
  GpuAdamW adamw_;
  std::vector<ops::GpuGradient> sums_;  // of several parts or ranks
  Steps steps_, parts_;
  bool record_, forget_ = false;
  const Step* shown_ = nullptr;  // whose gradients the parameters show
  Recordings<int, Nothing> updates_;
  std::vector<Batch> computed_;
};

}  // namespace

std::unique_ptr<Execution> recorded(model::Model& model, AdamW& optimizer,
                                    const TrainConfig& config, const Ranks& ranks, int64_t bucket,
                                    bool record) {
  return std::make_unique<Recorded>(model, optimizer, config, ranks, bucket, record);
}

}  // namespace lrnn::training
