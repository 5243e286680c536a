#include "tests/cuda/device.h"
#include "tests/ops/every_op.h"
#include "tests/training/small.h"
#include "training/trainer.h"

// Every kernel once, on problems as small as its tiles allow and that do not fill them: what `make
// gpu-check` runs under the sanitizers, which slow kernels down a hundredfold. The cases are those
// of each op's case.h; the tests of each op ask more.
namespace lrnn {
namespace {

struct EveryKernelOnGpu : OnGpu {};

// Sweeps in segments, which the sanitizers take minutes for, have a test of their own.
constexpr int64_t kInSegments = 800;

void expect_kernels(const std::string& name, bool in_segments) {
  int64_t asked = 0;
  for (const auto& op : ops::every_op())
    for (const auto& ask : op.kernels) {
      if ((!name.empty() && op.name != name) ||
          (op.recurrent && ask.T >= kInSegments) != in_segments)
        continue;
      expect_agreement(op, ask, ask.dtype, torch::kCUDA);
      ++asked;
    }
  EXPECT_GT(asked, 0);
}

TEST_F(EveryKernelOnGpu, AgreesWithItsDefinition) { expect_kernels("", false); }
TEST_F(EveryKernelOnGpu, DeltaProductInSegments) { expect_kernels("delta_product", true); }

// Kernel by kernel, not as a recording: the sanitizers then see each tensor in memory of its own.
TEST_F(EveryKernelOnGpu, AnUpdateOfTheTrainer) {
  for (const char* precision : {"float32", "bfloat16"}) {
    Small small({std::string("train.precision=") + precision, "train.clip=1.0"});
    const auto stream = ops::gpu()->own_stream();
    small.model->to(torch::kCUDA);
    training::Trainer trainer(*small.model, *small.task, small.config.train, 1, false);
    for (int64_t step = 0; step < 2; ++step) {
      const auto update = trainer.update(step, step);
      EXPECT_TRUE(std::isfinite(update.loss)) << update.loss;
      EXPECT_FALSE(update.skipped);
    }
  }
}

}  // namespace
}  // namespace lrnn
