#include "training/ranks.h"

// The headers of c10d ask for these; LibTorch itself is built with them.
#ifndef USE_DISTRIBUTED
#define USE_DISTRIBUTED
#endif
#ifndef USE_C10D
#define USE_C10D
#endif
#include <torch/cuda.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "base/error.h"
#include "ops/torch.h"

namespace lrnn::training {

using torch::Tensor;

namespace {

c10::intrusive_ptr<c10d::ProcessGroup> resolve(const std::string& group) {
  try {
    return c10d::resolve_process_group(group);
  } catch (const c10::Error&) {
    throw Error(cat("there is no process group '", group, "' in this process"),
                "several processes are started with: torchrun --nproc-per-node N -m lrnn train …");
  }
}

}  // namespace

Ranks::Ranks(const std::string& group, torch::Device device) : device_(device) {
  if (group.empty()) return;
  const auto found = resolve(group);
  group_ = std::shared_ptr<c10d::ProcessGroup>(found.get(), [found](c10d::ProcessGroup*) {});
  rank_ = found->getRank(), count_ = found->getSize();
}

// Gloo copies from and to a GPU on streams of its own, at the pace of the host anyway: the GPU is
// let come to rest on either side of it. NCCL keeps to the order of the current stream.
void Ranks::exchange(const std::function<c10::intrusive_ptr<c10d::Work>()>& message) const {
  const bool through_the_host = device_.is_cuda() && group_->getBackendName() == "gloo";
  if (through_the_host) torch::cuda::synchronize();
  message()->wait();
  if (through_the_host) torch::cuda::synchronize();
}

void Ranks::sum_own_slice(const Tensor& x) const {
  if (count_ == 1) return;
  check(x.numel() % count_ == 0, "[ranks] ", x.numel(), " numbers are not ", count_, " slices");
  const torch::NoGradGuard no_grad;
  Tensor received = torch::empty_like(x), sent = x;
  std::vector<int64_t> equal;  // empty: slices of one size
  exchange([&] { return group_->alltoall_base(received, sent, equal, equal); });
  const Tensor parts = received.view({count_, -1});
  Tensor sum = x.view({count_, -1})[rank_];
  sum.copy_(parts[0]);
  for (int64_t r = 1; r < count_; ++r) sum.add_(parts[r]);
}

void Ranks::share_slices(const Tensor& x) const {
  if (count_ == 1) return;
  const torch::NoGradGuard no_grad;
  Tensor to = x, own = x.view({count_, -1})[rank_].clone();
  exchange([&] { return group_->_allgather_base(to, own); });
}

void Ranks::from_lead(const Tensor& x) const {
  if (!group_) return;
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> message = {x.to(device_)};  // NCCL takes nothing that lies in the host's
  c10d::BroadcastOptions options;
  options.rootRank = 0;
  exchange([&] { return group_->broadcast(message, options); });
  if (!message[0].is_same(x)) x.copy_(message[0]);
}

std::string Ranks::from_lead(const std::string& text) const {
  if (!group_) return text;
  const Tensor size = torch::tensor({int64_t(text.size())}, torch::kLong);
  from_lead(size);
  const int64_t n = size.item<int64_t>();
  const Tensor bytes = torch::zeros({n}, torch::kUInt8);
  if (lead()) std::copy(text.begin(), text.end(), bytes.mutable_data_ptr<uint8_t>());
  if (n > 0) from_lead(bytes);
  return {reinterpret_cast<const char*>(bytes.const_data_ptr<uint8_t>()), size_t(n)};
}

Tensor Ranks::all(const Tensor& mine) const {
  if (count_ == 1) return mine.unsqueeze(0);
  const torch::NoGradGuard no_grad;
  Tensor own = mine, to = torch::empty({count_ * mine.numel()}, mine.options());
  exchange([&] { return group_->_allgather_base(to, own); });
  return to.view({count_, -1});
}

std::vector<std::vector<double>> Ranks::numbers(const std::vector<double>& mine) const {
  if (count_ == 1) return {mine};
  const Tensor everybody = all(torch::tensor(mine, torch::kFloat64).to(device_)).cpu();
  std::vector<std::vector<double>> out;
  for (int64_t r = 0; r < count_; ++r) {
    const double* const row = everybody[r].const_data_ptr<double>();
    out.emplace_back(row, row + mine.size());
  }
  return out;
}

bool Ranks::any(bool mine) const {
  for (const auto& said : numbers({double(mine)}))
    if (said[0] != 0) return true;
  return false;
}

}  // namespace lrnn::training
