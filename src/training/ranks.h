#pragma once
#include <torch/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace c10d {
class ProcessGroup;
class Work;
}  // namespace c10d

namespace lrnn::training {

// The processes that train one model together, each with a copy of it: those of a process group of
// torch.distributed, which `torchrun -m lrnn train` makes, or this one alone. Sums are made by one
// process in the order of the ranks, so their bits depend neither on the transport nor on who comes
// first. Every method is called by all of them, in the same order.
class Ranks {
 public:
  Ranks() = default;  // this process alone
  // The group of that name (empty: alone). Its messages go through memory of `device`, on a GPU in
  // the order of the current stream: never in a recording.
  Ranks(const std::string& group, torch::Device device);

  int64_t rank() const { return rank_; }
  int64_t count() const { return count_; }
  bool lead() const { return rank_ == 0; }

  // x is count() slices of one size, rank r's the r-th. Everybody's x is added up, the lead's
  // first; each gets the slice that is its own, and what the others hold is lost.
  void sum_own_slice(const torch::Tensor& x) const;
  // Everybody gets each slice from the one whose own it is.
  void share_slices(const torch::Tensor& x) const;
  // Everybody's numbers [n], by rank: [count,n].
  torch::Tensor all(const torch::Tensor& mine) const;
  // The lead's x for everybody.
  void from_lead(const torch::Tensor& x) const;
  std::string from_lead(const std::string& text) const;
  // Everybody's numbers, by rank; all have the same many.
  std::vector<std::vector<double>> numbers(const std::vector<double>& mine) const;
  bool any(bool mine) const;

 private:
  // Starts a message and returns when what it brings may be read.
  void exchange(const std::function<c10::intrusive_ptr<c10d::Work>()>& message) const;

  int64_t rank_ = 0, count_ = 1;
  torch::Device device_ = torch::kCPU;
  std::shared_ptr<c10d::ProcessGroup> group_;
};

// A contiguous share of a flat buffer.
struct Slice {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

}  // namespace lrnn::training
