#include <c10/cuda/CUDACachingAllocator.h>

#include <iostream>

#include "tests/cuda/device.h"

namespace {

// Some tests take 28 GiB. Other programs on the GPU, other shards of these tests for one, need them
// afterwards.
struct GiveBack : testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override {
    namespace allocator = c10::cuda::CUDACachingAllocator;
    constexpr int64_t kWorthGivingBack = int64_t(1) << 30;
    if (!lrnn::why_no_gpu().empty() || !at::globalContext().hasCUDA()) return;
    const auto stats = allocator::getDeviceStats(0);
    if (stats.reserved_bytes[0].current - stats.allocated_bytes[0].current >= kWorthGivingBack)
      allocator::emptyCache();
  }
};

}  // namespace

// The tests of the GPU kernels. With `--chip=80` (or 86, 89, 100, 120) they choose kernels as on a
// chip of that compute capability: with no more shared memory than it has, and without Hopper's
// instructions.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--chip=", 0) == 0) lrnn::chip_asked_for = std::atoi(word.c_str() + 7);
    if (lrnn::chip_asked_for > 0 && lrnn::choose_kernels_as_on(lrnn::chip_asked_for)) continue;
    std::cerr << "cuda_test: '" << word << "' is not known\n  --chip= takes 80, 86, 89, 100 or 120"
              << (lrnn::why_no_gpu().empty() ? "" : ", and a GPU: " + lrnn::why_no_gpu()) << "\n";
    return 2;
  }
  testing::UnitTest::GetInstance()->listeners().Append(new GiveBack);
  return RUN_ALL_TESTS();
}
