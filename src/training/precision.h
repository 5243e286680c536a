#pragma once
#include <string>

namespace lrnn::training {

// While it lives, matrix products take and give bfloat16 ("bfloat16") or nothing changes
// ("float32"). Weights, norms and the loss stay float32 either way.
class Precision {
 public:
  explicit Precision(const std::string& name);
  ~Precision();
  Precision(const Precision&) = delete;
  Precision& operator=(const Precision&) = delete;

 private:
  bool on_, before_;
};

}  // namespace lrnn::training
