#include "tests/cuda/delta_product_cuda_cases.h"

// The kernel for heads of up to 32 x 32, a warp each, against the definition.
namespace lrnn {
namespace {

struct DeltaProductSmallOnGpu : OnGpu {};

const std::vector<Case> kSmallCases = {
    {.B = 1, .T = 1, .N = 1, .H = 1, .K = 8, .V = 8, .cancels = 4},
    {.B = 3, .T = 8, .N = 1, .H = 3, .K = 32, .V = 32},
    {.B = 2, .T = 65, .N = 1, .H = 2, .K = 32, .V = 32, .gate = true},
    {.B = 2, .T = 33, .N = 2, .H = 3, .K = 32, .V = 32, .gate = true, .state = false},
    {.B = 1, .T = 29, .N = 3, .H = 5, .K = 16, .V = 24, .gate = true},
    {.B = 1, .T = 7, .N = 17, .H = 1, .K = 24, .V = 8},
    {.B = 2, .T = 40, .N = 2, .H = 1, .K = 8, .V = 32, .gate = true, .q = false},
    {.B = 1, .T = 90, .N = 2, .H = 3, .K = 32, .V = 16, .gate = true, .lengths = {13, 0, 76, 1}},
};

TEST_F(DeltaProductSmallOnGpu, EqualsTheDefinition) {
  for (Case c : kSmallCases)
    for (const auto dtype : {torch::kFloat32, torch::kBFloat16}) {
      c.dtype = dtype;
      SCOPED_TRACE(testing::Message() << c);
      auto in = make_inputs(c);
      in.accuracy = "exact";
      const Everything want = defined_in_double(in), got = everything(in, on_gpu);
      const double limit = c.cancels * tolerance(torch::kFloat32);
      expect_all_close(got, want, dtype == torch::kBFloat16 ? 1e-2 : limit);
      const size_t state = c.q ? 1 : 0;
      EXPECT_CLOSE_TO("state", got.tensors[state].second, want.tensors[state].second, limit);
    }
}

TEST_F(DeltaProductSmallOnGpu, ReflectionsAndExtremeGates) {
  for (const float log_gate : {0.f, -std::numeric_limits<float>::infinity(), -200.f}) {
    auto in =
        make_inputs({.T = 70, .N = 2, .K = 32, .V = 32, .gate = true, .dtype = torch::kFloat32});
    in.beta.fill_(2);
    for (const int64_t t : {20, 21, 66}) in.log_gate.select(1, t).fill_(log_gate);
    SCOPED_TRACE(log_gate);
    expect_all_close(everything(in, on_gpu), defined_in_double(in), 2e-5);
  }
}

TEST_F(DeltaProductSmallOnGpu, TheSameBitsTwiceInHalvesAndForAGateOfOne) {
  auto in = make_inputs(
      {.B = 3, .T = 100, .N = 3, .H = 5, .K = 32, .V = 32, .gate = true, .dtype = torch::kFloat32});
  expect_same_bits(everything(in, on_gpu), everything(in, on_gpu));
  const auto whole = on_gpu(in);
  const auto part = [&](int64_t begin, int64_t end, const torch::Tensor& state) {
    auto piece = in;
    for (torch::Tensor* x : {&piece.q, &piece.k, &piece.v, &piece.beta, &piece.log_gate})
      *x = x->slice(1, begin, end);
    piece.state = state;
    return piece;
  };
  for (const int64_t cut : {1, 37, 99}) {
    const auto first = on_gpu(part(0, cut, in.state)), second = on_gpu(part(cut, 100, first.state));
    EXPECT_TRUE(torch::equal(torch::cat({first.o, second.o}, 1), whole.o)) << cut;
    EXPECT_TRUE(torch::equal(second.state, whole.state)) << cut;
  }
  in.log_gate.zero_();
  auto with = everything(in, on_gpu);
  std::erase_if(with.tensors, [](const auto& x) { return x.first == "dlog_gate"; });
  in.log_gate = torch::Tensor();
  expect_same_bits(with, everything(in, on_gpu));
}

}  // namespace
}  // namespace lrnn
