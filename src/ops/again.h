#pragma once
#include <vector>

#include "ops/node.h"

// Results that are cheaper to make again in backward than to keep: norms, convolutions, products
// with a SiLU. Their nodes have saved what they are made of anyway. Whoever reads such a result in
// backward keeps the node that made it instead. The same kernel on the same numbers: the same bits.
namespace lrnn::ops {

// While it lives, and `on`, inputs that this thread's ops keep are made again where they can be.
class MakeAgain {
 public:
  explicit MakeAgain(bool on);
  ~MakeAgain();
  MakeAgain(const MakeAgain&) = delete;
  MakeAgain& operator=(const MakeAgain&) = delete;

 private:
  bool before_;
};

// A node whose results can be made again until its own backward has run. They are made together,
// once, and stay until then.
class MakesAgain {
 public:
  virtual ~MakesAgain() = default;
  Tensor again(uint32_t output);

 protected:
  virtual bool can_make_again() const { return true; }
  virtual std::vector<Tensor> make_again() = 0;  // in the order of the node's outputs
  void forget_made() { made_.clear(); }

 private:
  friend class KeptInput;
  std::vector<Tensor> made_;
};

// An input that backward will read.
class KeptInput {
 public:
  KeptInput() = default;
  explicit KeptInput(const Tensor& x);
  Tensor unpack() const;
  // Whether it has no history: its derivative would be lost.
  bool is_made_again() const { return maker_ != nullptr; }
  void reset_data() { value_.reset_data(), node_.reset(), maker_ = nullptr; }

 private:
  SavedVariable value_;
  std::shared_ptr<torch::autograd::Node> node_;
  MakesAgain* maker_ = nullptr;  // the same
  uint32_t output_ = 0;
  std::vector<int64_t> shape_;
};

}  // namespace lrnn::ops
