#include "tests/cuda/delta_product_cuda_cases.h"

// Small heads in chunks of 16, a warp each, against the definition. Bfloat16 inputs get them where
// there are 512 heads or more, whatever precision was asked for.
namespace lrnn {
namespace {

using torch::Tensor;
struct DeltaProductSmallChunksOnGpu : OnGpu {};

const std::vector<Case> kCases = {
    {.B = 130, .T = 70, .N = 1, .H = 4, .K = 32, .V = 32},
    {.B = 103, .T = 33, .N = 2, .H = 5, .K = 32, .V = 32, .gate = true, .state = false},
    {.B = 64, .T = 29, .N = 3, .H = 8, .K = 16, .V = 24, .gate = true},
    {.B = 512, .T = 5, .N = 17, .H = 1, .K = 24, .V = 8},
    {.B = 256, .T = 40, .N = 4, .H = 2, .K = 8, .V = 32, .gate = true, .q = false},
    {.B = 1, .T = 90, .N = 2, .H = 128, .K = 32, .V = 16, .gate = true, .lengths = {13, 0, 76, 1}},
};

TEST_F(DeltaProductSmallChunksOnGpu, EqualTheDefinition) {
  for (Case c : kCases) {
    c.dtype = torch::kBFloat16;
    SCOPED_TRACE(testing::Message() << c);
    auto in = make_inputs(c);
    in.beta = in.beta.to(torch::kFloat32);
    in.accuracy = "accurate";
    const Everything want = defined_in_double(in), got = everything(in, on_gpu);
    expect_all_close(got, want, 3e-3);
    const size_t state = c.q ? 1 : 0;
    EXPECT_CLOSE_TO("state", got.tensors[state].second, want.tensors[state].second, 1e-4);
    torch::NoGradGuard no_grad;  // keeps nothing for backward, and computes the same
    EXPECT_TRUE(torch::equal(on_gpu(in).state, got.tensors[state].second));
    in.accuracy = "fast";
    EXPECT_TRUE(torch::equal(on_gpu(in).state, got.tensors[state].second));
  }
}

TEST_F(DeltaProductSmallChunksOnGpu, TheSameBitsTwiceAndForAGateOfOne) {
  auto in = make_inputs({.B = 128,
                         .T = 50,
                         .N = 3,
                         .H = 4,
                         .K = 32,
                         .V = 32,
                         .gate = true,
                         .dtype = torch::kBFloat16});
  in.log_gate.zero_();
  auto with = everything(in, on_gpu);
  expect_same_bits(with, everything(in, on_gpu));
  std::erase_if(with.tensors, [](const auto& x) { return x.first == "dlog_gate"; });
  in.log_gate = Tensor();
  expect_same_bits(with, everything(in, on_gpu));
}

TEST_F(DeltaProductSmallChunksOnGpu, GatesThatForgetEverything) {
  for (const float log_gate : {-std::numeric_limits<float>::infinity(), -200.f}) {
    auto in = make_inputs({.B = 128,
                           .T = 70,
                           .N = 1,
                           .H = 4,
                           .K = 32,
                           .V = 32,
                           .gate = true,
                           .dtype = torch::kBFloat16});
    for (const int64_t t : {0, 20, 21, 66}) in.log_gate.select(1, t).fill_(log_gate);
    SCOPED_TRACE(log_gate);
    expect_all_close(everything(in, on_gpu), defined_in_double(in), 6e-3);
  }
}

TEST_F(DeltaProductSmallChunksOnGpu, AccurateAtBetaTwo) {
  auto in = along_one_direction(make_inputs(
      {.B = 128, .T = 512, .N = 1, .H = 4, .K = 32, .V = 32, .dtype = torch::kBFloat16}));
  in.accuracy = "accurate";
  expect_near_exact(in);
}

// A value of beta of exactly 0 writes nothing and still has a gradient.
TEST_F(DeltaProductSmallChunksOnGpu, BetaOfZero) {
  auto in =
      make_inputs({.B = 128, .T = 40, .N = 1, .H = 4, .K = 32, .V = 32, .dtype = torch::kBFloat16});
  in.beta = in.beta.to(torch::kFloat32);
  for (const int64_t t : {0, 7, 39}) in.beta.select(1, t).zero_();
  expect_all_close(everything(in, on_gpu), defined_in_double(in), 6e-3);
}

}  // namespace
}  // namespace lrnn
