#pragma once
#include <map>

#include "ops/gpu.h"
#include "training/trainer.h"

namespace lrnn::training {

// Trains on a GPU. Forward, loss, backward, clipping and the update are recorded once for every
// padded length and replayed: a small model is bound by launches otherwise. The host copies tokens
// in, makes the next batch while the GPU works, and reads four numbers.
class GpuTrainer final : public Trainer {
 public:
  // With `record` false every kernel is launched by itself: the same bits, for tests.
  GpuTrainer(model::Model& model, const tasks::Task& task, const TrainConfig& config, uint64_t seed,
             bool record = true);
  Update update(int64_t step, int64_t index) override;
  int64_t kernels() const { return kernels_; }  // and copies, of the last recorded update

 private:
  // The parts of one batch, each [count,length] and its targets.
  struct Parts {
    int64_t index = -1, length = 0, targets = 0;
    std::vector<bool> only;  // which parts have Context::only
    std::vector<Batch> parts;
    torch::Tensor message;  // all that the GPU needs, in one piece
  };
  struct Step {
    torch::Tensor message;     // on the GPU
    std::vector<Batch> parts;  // views of it: what the recording reads
    std::unique_ptr<ops::Recording> recording;
  };

  std::vector<tasks::Example> drawn(int64_t index) const;
  Parts make(int64_t index) const;
  Step& step_for(const Parts& parts);
  void work(const Step& step);
  static void lay_out(const torch::Tensor& message, std::vector<Batch>& parts, bool fill);
  void send(double lr, const Parts& parts, bool active, Step& step);
  [[noreturn]] void explain(int64_t step, const Step& at);

  ops::Gpu& gpu_;
  bool record_;
  int64_t kernels_ = 0;
  int64_t bucket_;  // lengths are rounded up to a multiple of this
  torch::Tensor report_, host_report_;
  ops::GpuAdamW adamw_;
  Parts next_;  // made while the GPU was busy with the one before
  std::map<std::pair<int64_t, std::vector<bool>>, Step> steps_;  // by length, and by Parts::only
};

}  // namespace lrnn::training
