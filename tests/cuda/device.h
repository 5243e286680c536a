#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "ops/torch.h"

// Loads the GPU kernels beside the test programs. A test without a GPU is skipped and says why.
namespace lrnn {

inline const std::string& why_no_gpu() {
  static const std::string why = [] {
    if (!dlopen(LRNN_BINARY_DIR "/liblrnn_cuda.so", RTLD_NOW | RTLD_GLOBAL) &&
        !dlopen("liblrnn_cuda.so", RTLD_NOW | RTLD_GLOBAL))
      return std::string(dlerror());
    return std::string(at::globalContext().hasCUDA() ? "" : "no GPU was found");
  }();
  return why;
}

struct OnGpu : testing::Test {
  void SetUp() override {
    if (!why_no_gpu().empty()) GTEST_SKIP() << why_no_gpu();
  }
};

}  // namespace lrnn
