#include "tests/cuda/delta_product_cuda_cases.h"

// The recurrent kernel against the definition, in outputs and every gradient.
namespace lrnn {
namespace {

using torch::Tensor;
struct DeltaProductExactOnGpu : OnGpu {};

const std::vector<Case> kExactCases =
    and_more(odd_cases(), {
                              {.B = 1, .T = 17, .N = 1, .H = 2, .K = 200, .V = 130, .gate = true},
                              {.B = 1, .T = 9, .N = 2, .H = 1, .K = 300, .V = 500, .gate = true},
                          });

TEST_F(DeltaProductExactOnGpu, EqualsTheDefinition) {
  for (Case c : kExactCases) {
    c.dtype = torch::kFloat64;
    const Everything want = defined_in_double(make_inputs(c));
    for (const auto dtype : {torch::kFloat64, torch::kFloat32}) {
      c.dtype = dtype;
      SCOPED_TRACE(testing::Message() << c);
      const auto in = make_inputs(c);
      expect_all_close(everything(in, on_gpu),
                       dtype == torch::kFloat64 ? want : defined_in_double(in),
                       c.cancels * tolerance(dtype));
    }
  }
}

TEST_F(DeltaProductExactOnGpu, EqualsTheDefinitionOnBFloat16) {
  for (Case c : kExactCases) {
    c.dtype = torch::kBFloat16;
    SCOPED_TRACE(testing::Message() << c);
    auto in = make_inputs(c);
    in.accuracy = "exact";
    const Everything want = defined_in_double(in), got = everything(in, on_gpu);
    expect_all_close(got, want, 1e-2);
    // The state itself never passes through bfloat16: it is as exact as from float32 inputs.
    const size_t state = c.q ? 1 : 0;
    EXPECT_CLOSE_TO("state", got.tensors[state].second, want.tensors[state].second,
                    c.cancels * tolerance(torch::kFloat32));
  }
}

TEST_F(DeltaProductExactOnGpu, ReflectionsAndExtremeGates) {
  for (const double log_gate : {0.0, -std::numeric_limits<double>::infinity(), -200.0}) {
    auto in = make_inputs({.T = 70, .N = 2, .K = 16, .V = 8, .gate = true});
    in.beta.fill_(2);
    for (const int64_t t : {20, 21, 66}) in.log_gate.select(1, t).fill_(log_gate);
    SCOPED_TRACE(log_gate);
    expect_all_close(everything(in, on_gpu), defined_in_double(in), 1e-11);
  }
}

TEST_F(DeltaProductExactOnGpu, AGateOfOneGivesTheBitsOfNoGate) {
  auto in =
      make_inputs({.T = 300, .N = 2, .K = 16, .V = 24, .gate = true, .dtype = torch::kFloat32});
  in.log_gate.zero_();
  auto with = everything(in, on_gpu);
  in.log_gate = Tensor();
  std::erase_if(with.tensors, [](const auto& x) { return x.first == "dlog_gate"; });
  expect_same_bits(with, everything(in, on_gpu));
}

TEST_F(DeltaProductExactOnGpu, TheSameBitsTwiceAndInHalves) {
  const auto in = make_inputs(
      {.B = 3, .T = 100, .N = 3, .H = 2, .K = 32, .V = 40, .gate = true, .dtype = torch::kFloat32});
  expect_same_bits(everything(in, on_gpu), everything(in, on_gpu));
  const auto whole = on_gpu(in);
  const auto part = [&](int64_t begin, int64_t end, const Tensor& state) {
    auto piece = in;
    for (Tensor* x : {&piece.q, &piece.k, &piece.v, &piece.beta, &piece.log_gate})
      *x = x->slice(1, begin, end);
    piece.state = state;
    return piece;
  };
  for (const int64_t cut : {0, 1, 37, 99, 100}) {
    const auto first = on_gpu(part(0, cut, in.state)), second = on_gpu(part(cut, 100, first.state));
    EXPECT_TRUE(torch::equal(torch::cat({first.o, second.o}, 1), whole.o)) << cut;
    EXPECT_TRUE(torch::equal(second.state, whole.state)) << cut;
  }
}

TEST_F(DeltaProductExactOnGpu, NoTokensReturnTheState) {
  const auto in = make_inputs({.B = 3, .T = 0, .N = 2, .H = 2, .K = 4, .V = 5});
  EXPECT_TRUE(torch::equal(on_gpu(in).state, in.state));
  expect_all_close(everything(in, on_gpu), defined_in_double(in), 0);
}

TEST_F(DeltaProductExactOnGpu, NonContiguousInputs) {
  const Case c{.B = 2, .T = 9, .N = 2, .H = 3, .K = 8, .V = 12, .gate = true};
  const auto in = make_inputs(c);
  auto strided = moved(in);
  strided.k = strided.k.permute({3, 0, 1, 2, 4}).contiguous().permute({1, 2, 3, 0, 4});
  strided.v = torch::stack({strided.v, strided.v}, -1).select(-1, 0);
  strided.q = torch::cat({strided.q, strided.q}, -1).slice(-1, 0, c.K);
  strided.state = strided.state.transpose(2, 3).contiguous().transpose(2, 3);
  const auto want = on_gpu(in), got = ops::delta_product(strided);
  EXPECT_TRUE(torch::equal(got.o.cpu(), want.o));
  EXPECT_TRUE(torch::equal(got.state.cpu(), want.state));
}

// More heads than a grid's second dimension holds.
TEST_F(DeltaProductExactOnGpu, ManySmallHeads) {
  const auto in =
      make_inputs({.B = 70000, .T = 2, .H = 1, .K = 2, .V = 2, .dtype = torch::kFloat32});
  expect_all_close(everything(in, on_gpu), everything(in, ops::delta_product), 1e-6);
}

}  // namespace
}  // namespace lrnn
