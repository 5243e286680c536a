#include "experiments/checkpoint_writer.h"

#include <chrono>
#include <new>

#include "base/atomic_file.h"
#include "model/checkpoint.h"
#include "ops/gpu.h"

namespace lrnn::experiments {
namespace {

using torch::Tensor;
using Tensors = CheckpointFiles::Tensors;

constexpr int64_t kLine = 64;  // every copy begins on one

int64_t rounded(const Tensor& x) { return (int64_t(x.nbytes()) + kLine - 1) / kLine * kLine; }

int64_t bytes_of(const CheckpointFiles& files) {
  int64_t out = 0;
  for (const auto* tensors : {&files.model, &files.moments})
    for (const auto& [name, x] : *tensors) out += rounded(x);
  return out;
}

bool on_gpu(const CheckpointFiles& files) {
  return !files.model.empty() && files.model.begin()->second.is_cuda();
}

// Nothing when there is not so much memory.
Tensor make_room(int64_t bytes, bool gpu) {
  Tensor out = gpu ? ops::gpu()->host_memory(bytes) : Tensor();
  if (out.defined()) return out;
  try {
    return torch::empty({bytes}, torch::kUInt8);
  } catch (const std::bad_alloc&) {
    return {};
  } catch (const c10::Error&) {
    return {};
  }
}

// From byte `at` of the room on, which is moved behind them.
Tensors copied(const Tensors& from, const Tensor& room, int64_t& at) {
  const torch::NoGradGuard no_grad;
  Tensors out;
  for (const auto& [name, x] : from) {
    Tensor to = room.narrow(0, at, int64_t(x.nbytes())).view(x.scalar_type()).view(x.sizes());
    to.copy_(x.detach(), /*non_blocking=*/true);
    out.emplace(name, to);
    at += rounded(x);
  }
  return out;
}

}  // namespace

Checkpoints::Sums write_files(const std::string& folder, const CheckpointFiles& files,
                              std::launch how) {
  Checkpoints::Sums sums;
  const std::string weights = "model.safetensors", moments = "optimizer.safetensors";
  std::future<FileSum> second;
  if (!files.moments.empty())
    second = std::async(how, [&] {
      return model::write_checkpoint(folder + "/" + moments, {files.moments, {}});
    });
  sums[weights] = model::write_checkpoint(folder + "/" + weights, {files.model, {}});
  write_atomically(folder + "/state.json", print(files.state));
  write_atomically(folder + "/config.yaml", files.config);
  if (second.valid()) sums[moments] = second.get();
  return sums;
}

void CheckpointWriter::write(const CheckpointFiles& files, std::launch how) const {
  checkpoints_.save(files.state.step,
                    [&](const std::string& folder) { return write_files(folder, files, how); });
  checkpoints_.mark_best(files.state.best_step);
  checkpoints_.prune(keep_, files.state.best_step);
}

// False when there is no room for copies.
bool CheckpointWriter::copy(const CheckpointFiles& files, int64_t bytes, bool gpu) {
  if (!room_.defined() || room_.numel() < bytes) room_ = make_room(bytes, gpu);
  if (!room_.defined()) return false;
  int64_t at = 0;
  copy_ = {.model = copied(files.model, room_, at),
           .moments = copied(files.moments, room_, at),
           .state = files.state,
           .config = files.config};
  if (gpu) ops::gpu()->wait();
  return true;
}

void CheckpointWriter::save(const CheckpointFiles& files) {
  wait();
  const int64_t bytes = bytes_of(files);
  if (bytes <= kAtOnce || !copy(files, bytes, on_gpu(files)))
    return write(files, std::launch::deferred);
  writing_ = std::async(std::launch::async, [this] { write(copy_, std::launch::async); });
}

void CheckpointWriter::check() {
  if (writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
    wait();
}

void CheckpointWriter::wait() {
  if (writing_.valid()) writing_.get();
}

}  // namespace lrnn::experiments
