#include "tests/cuda/delta_product_cuda_cases.h"

// Few long sequences, which the Hopper kernels cut into segments and join by their affine maps,
// against the recurrence in double. (The CPU kernel is that recurrence; its own tests hold it
// against the definition, which would take minutes here.)
namespace lrnn {
namespace {

struct DeltaProductSegmentsOnGpu : OnGpu {};

const std::vector<Case> kLongCases = {
    {.B = 1, .T = 2100, .N = 1, .H = 2, .K = 128, .V = 128, .gate = true},
    {.B = 2, .T = 4097, .N = 1, .H = 1, .K = 128, .V = 128},
    {.B = 1, .T = 1111, .N = 2, .H = 1, .K = 64, .V = 128, .gate = true, .state = false},
    {.B = 1, .T = 901, .N = 3, .H = 2, .K = 96, .V = 64},
    {.B = 1, .T = 2048, .N = 1, .H = 1, .K = 40, .V = 192, .gate = true},
    {.B = 1, .T = 2500, .N = 1, .H = 1, .K = 128, .V = 256, .q = false},
    {.B = 3, .T = 3550, .N = 1, .H = 3, .K = 128, .V = 64},
    {.B = 1, .T = 2500, .N = 1, .H = 9, .K = 64, .V = 192, .gate = true, .state = false},
    // Packed: one that is long, one of a few tokens, one of none; each shorter than a segment.
    {.B = 1, .T = 2203, .N = 1, .H = 2, .K = 128, .V = 128, .lengths = {1500, 3, 0, 700}},
    {.B = 1, .T = 1203, .N = 2, .H = 2, .K = 64, .V = 128, .gate = true, .lengths = {3, 1200}},
    {.B = 1, .T = 1600, .N = 1, .H = 2, .K = 128, .V = 128, .lengths = {400, 400, 400, 400}},
    {.B = 1, .T = 2100, .N = 1, .H = 4, .K = 128, .V = 128, .gate = true, .key_heads = 2},
};

Everything in_wide_recurrence(const ops::DeltaProduct& in) {
  return everything(in_double(in),
                    [](const ops::DeltaProduct& x) { return ops::delta_product(x); });
}

// beta in (0,1): with beta up to 2 and no gate bfloat16 operands lose digits as time goes on.
TEST_F(DeltaProductSegmentsOnGpu, EqualTheRecurrence) {
  for (Case c : kLongCases) {
    c.dtype = torch::kBFloat16;
    auto in = make_inputs(c);
    in.beta = in.beta.to(torch::kFloat32) / 2;
    const Everything want = in_wide_recurrence(in);
    for (const char* precision : {"fast", "accurate"}) {
      SCOPED_TRACE(testing::Message() << c << " " << precision);
      in.accuracy = precision;
      const Everything got = everything(in, on_gpu);
      ASSERT_EQ(got.tensors.size(), want.tensors.size());
      const bool fast = in.accuracy == "fast";
      for (size_t i = 0; i < got.tensors.size(); ++i) {
        const auto& [name, x] = got.tensors[i];
        const double limit = fast                    ? 2e-2
                             : name == "final state" ? 2e-4
                             : name == "dstate"      ? 3e-3
                             : name == "dlog_gate"   ? 2e-2
                                                     : 6e-3;
        EXPECT_CLOSE_TO(name, x, want.tensors[i].second, limit);
      }
      torch::NoGradGuard no_grad;
      EXPECT_TRUE(torch::equal(on_gpu(in).state, got.tensors[c.q ? 1 : 0].second));
    }
  }
}

// Where nothing is left of what was before, maps begin late (hopper_map.cuh): after a gate of zero,
// after gates that leave less than a float32 holds, and not where a head forgets nothing.
TEST_F(DeltaProductSegmentsOnGpu, EqualTheRecurrenceWhereTheGateForgets) {
  auto in = make_inputs({.B = 1,
                         .T = 4200,
                         .N = 1,
                         .H = 8,
                         .K = 128,
                         .V = 128,
                         .gate = true,
                         .dtype = torch::kBFloat16});
  in.beta = in.beta.to(torch::kFloat32) / 2;
  in.log_gate.select(2, 0).mul_(8);
  in.log_gate.select(2, 1).zero_();
  in.log_gate.select(2, 2).slice(1, 0, torch::indexing::None, 500).fill_(-INFINITY);
  in.accuracy = "fast";
  torch::NoGradGuard no_grad;
  const auto got = on_gpu(in), want = ops::delta_product(in_double(in));
  EXPECT_CLOSE_TO("o", got.o, want.o, 2e-2);
  EXPECT_CLOSE_TO("state", got.state, want.state, 2e-2);
}

TEST_F(DeltaProductSegmentsOnGpu, AccurateAtBetaTwo) {
  auto in = make_inputs(
      {.B = 1, .T = 4096, .N = 1, .H = 2, .K = 128, .V = 128, .dtype = torch::kBFloat16});
  in.beta = torch::full({1, 4096, 1, 2}, 2.f);
  in.accuracy = "accurate";
  torch::NoGradGuard no_grad;
  EXPECT_CLOSE_TO("state", on_gpu(in).state, ops::delta_product(in_double(in)).state, 1e-3);
}

TEST_F(DeltaProductSegmentsOnGpu, TheSameBitsTwiceAndForAGateOfOne) {
  for (Case c : {Case{.B = 1, .T = 2200, .N = 1, .H = 2, .K = 128, .V = 128},
                 Case{.B = 3, .T = 3550, .N = 1, .H = 3, .K = 128, .V = 64}})
    for (const char* precision : {"fast", "accurate"}) {
      SCOPED_TRACE(testing::Message() << c << " " << precision);
      c.gate = true, c.dtype = torch::kBFloat16;
      auto in = make_inputs(c);
      in.accuracy = precision;
      in.log_gate.zero_();
      auto with = everything(in, on_gpu);
      expect_same_bits(with, everything(in, on_gpu));
      std::erase_if(with.tensors, [](const auto& x) { return x.first == "dlog_gate"; });
      in.log_gate = torch::Tensor();
      expect_same_bits(with, everything(in, on_gpu));
    }
}

}  // namespace
}  // namespace lrnn
