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

// The chip that `--chip=` names, as compute capability; 0: the one that is there (main.cpp).
inline int chip_asked_for = 0;

inline bool choose_kernels_as_on(int capability) {
  if (!why_no_gpu().empty()) return false;
  void* const found = dlsym(RTLD_DEFAULT, "lrnn_choose_kernels_as_on");
  return found && reinterpret_cast<bool (*)(int)>(found)(capability);
}

struct OnGpu : testing::Test {
  void SetUp() override {
    if (!why_no_gpu().empty()) GTEST_SKIP() << why_no_gpu();
  }
};

}  // namespace lrnn
