#include "experiments/reason.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <new>

#include "base/error.h"

namespace lrnn::experiments {
namespace {

TEST(Reason, OursHasItsHint) {
  const auto reason = reason_of(Error("train.steps is missing", "add it"));
  EXPECT_EQ(reason.text, "train.steps is missing");
  EXPECT_EQ(reason.hint, "add it");
}

// LibTorch appends a backtrace, a list of processes and advice about its allocator.
TEST(Reason, OfLibTorchIsOneLine) {
  try {
    TORCH_CHECK(false, "sizes differ");
  } catch (const std::exception& e) {
    EXPECT_NE(std::string(e.what()).find('\n'), std::string::npos);
    EXPECT_EQ(reason_of(e).text, "sizes differ");
  }
}

TEST(Reason, OfAFullGpuNamesTheWayOut) {
  const c10::OutOfMemoryError full(
      {__func__, __FILE__, __LINE__},
      "CUDA out of memory. Tried to allocate 26.00 MiB. GPU 0 has a total capacity of 139.80 "
      "GiB of which 12.06 MiB is free. Process 7574 has 8.05 GiB memory in use.\nException raised "
      "from");
  const auto reason = reason_of(full);
  EXPECT_EQ(reason.text,
            "CUDA out of memory. Tried to allocate 26.00 MiB. GPU 0 has a total capacity of 139.80 "
            "GiB of which 12.06 MiB is free.");
  EXPECT_NE(reason.hint.find("--jobs"), std::string::npos);
}

TEST(Reason, OfOthers) {
  EXPECT_EQ(reason_of(std::bad_alloc()).text, "there is not enough memory");
  EXPECT_EQ(reason_of(std::runtime_error("one\ntwo")).text, "one");
}

}  // namespace
}  // namespace lrnn::experiments
