#include "tests/cuda/delta_product_cuda_cases.h"

// What a call that asks for nothing gets: as right with a gate as without.
namespace lrnn {
namespace {

struct DeltaProductDefaultOnGpu : OnGpu {};

// At beta = 2 every step is a reflection, and a gate of exactly 1 forgets nothing.
TEST_F(DeltaProductDefaultOnGpu, AGateOfOneIsAsRightAsNoGate) {
  for (const int64_t T : {512, 1024, 4096})
    for (const int64_t size : {32, 128}) {
      SCOPED_TRACE(testing::Message() << "T " << T << ", K = V = " << size);
      auto in = make_inputs({.B = 1,
                             .T = T,
                             .N = 1,
                             .H = 2,
                             .K = size,
                             .V = size,
                             .gate = true,
                             .dtype = torch::kBFloat16});
      in.beta = torch::full({1, T, 1, 2}, 2.f);
      in.log_gate.zero_();
      const auto want = ops::delta_product(in_double(in));
      torch::NoGradGuard no_grad;
      const auto gated = on_gpu(in);
      EXPECT_CLOSE_TO("state", gated.state, want.state, 1e-3);
      EXPECT_CLOSE_TO("o", gated.o, want.o, 6e-3);
      in.log_gate = torch::Tensor();
      const auto bare = on_gpu(in);
      EXPECT_TRUE(torch::equal(gated.state, bare.state));
      EXPECT_TRUE(torch::equal(gated.o, bare.o));
    }
}

// Backward reads what forward kept, so it has to choose the same kernel.
TEST_F(DeltaProductDefaultOnGpu, GradientsAreThoseOfAccurate) {
  for (const int64_t size : {32, 128}) {
    auto in = make_inputs({.B = 1,
                           .T = 300,
                           .N = 2,
                           .H = 2,
                           .K = size,
                           .V = size,
                           .gate = true,
                           .dtype = torch::kBFloat16});
    const Everything by_default = everything(in, on_gpu);
    in.accuracy = "accurate";
    expect_same_bits(by_default, everything(in, on_gpu));
  }
}

}  // namespace
}  // namespace lrnn
