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

// A test per case, so that several processes can share them out. Sweeps in segments, which the
// sanitizers take longest for, are known by their name.
struct Kernel {
  ops::CheckedOp op;
  ops::Ask ask;
  std::string name;
};
constexpr int64_t kInSegments = 800;

std::vector<Kernel> every_kernel() {
  std::vector<Kernel> out;
  for (const auto& op : ops::every_op())
    for (const auto& ask : op.kernels)
      out.push_back({op, ask,
                     op.name + "_" + std::to_string(out.size()) +
                         (op.recurrent && ask.T >= kInSegments ? "_InSegments" : "")});
  return out;
}

struct CaseOnGpu : OnGpu, testing::WithParamInterface<Kernel> {};
TEST_P(CaseOnGpu, AgreesWithItsDefinition) {
  const auto& [op, ask, name] = GetParam();
  try {
    expect_agreement(op, ask, ask.dtype, torch::kCUDA);
  } catch (const Error& why) {
    // Chips with less shared memory than Hopper have no room for a few sizes in float64.
    const bool no_room = std::string(why.what()).find("shared memory") != std::string::npos;
    if (chip_asked_for == 0 || ask.dtype != torch::kFloat64 || !no_room) throw;
    GTEST_SKIP() << why.what();
  }
}
INSTANTIATE_TEST_SUITE_P(EveryKernelOnGpu, CaseOnGpu, testing::ValuesIn(every_kernel()),
                         [](const auto& info) { return info.param.name; });

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
