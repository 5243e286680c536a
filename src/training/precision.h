#pragma once
#include <c10/core/DeviceType.h>

#include <string>

namespace lrnn::training {

// While it lives, matrix products on that kind of device take and give bfloat16 ("bfloat16") or
// nothing changes ("float32"). Weights, norms and the loss stay float32 either way.
class Precision {
 public:
  Precision(const std::string& name, c10::DeviceType device);
  ~Precision();
  Precision(const Precision&) = delete;
  Precision& operator=(const Precision&) = delete;

 private:
  c10::DeviceType device_;
  bool on_, before_;
};

}  // namespace lrnn::training
