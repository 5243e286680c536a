#include "tests/cuda/delta_product_cuda_cases.h"

// Forward in one kernel (hopper_fused.cu): fast, K = V = 128, nothing kept for backward. Where
// something is kept, preparation and sweep are two kernels, whose bits it must have.
namespace lrnn {
namespace {

using torch::Tensor;
struct DeltaProductFusedOnGpu : OnGpu {};

ops::DeltaProductResult alone(const ops::DeltaProduct& in) {
  const torch::NoGradGuard no_grad;
  return on_gpu(in);
}
ops::DeltaProductResult with_kept(ops::DeltaProduct in) {
  in.k = in.k.detach().clone().requires_grad_();
  auto out = on_gpu(in);
  return {out.o.detach(), out.state.detach()};
}
void expect_bits(const ops::DeltaProductResult& a, const ops::DeltaProductResult& b) {
  EXPECT_TRUE(torch::equal(a.o, b.o));
  EXPECT_TRUE(torch::equal(a.state, b.state));
}

// With a head for every processor, as choose.h wants them.
Case wide(Case c) {
  const int64_t sequences = c.lengths.empty() ? c.B : int64_t(c.lengths.size());
  c.K = c.V = 128, c.dtype = torch::kBFloat16;
  c.H = (132 + sequences - 1) / sequences;
  if (c.key_heads) c.H = (c.H + c.key_heads - 1) / c.key_heads * c.key_heads;
  return c;
}
ops::DeltaProduct fast(const Case& c) {
  auto in = make_inputs(wide(c));
  in.beta = in.beta.to(torch::kFloat32);
  in.accuracy = "fast";
  return in;
}

// One chunk, many, unfinished ones, several micro-steps a token (those that divide a chunk, those
// that do not, those that are longer), sequences of a batch and packed, also empty ones.
const std::vector<Case> kCases = {
    {.B = 1, .T = 64, .N = 1, .state = false},
    {.B = 2, .T = 33, .N = 1},
    {.B = 2, .T = 640, .N = 1},
    {.B = 3, .T = 199, .N = 1, .gate = true},
    {.B = 2, .T = 193, .N = 1, .gate = true, .state = false},
    {.B = 2, .T = 96, .N = 2},
    {.B = 1, .T = 107, .N = 2, .gate = true},
    {.B = 2, .T = 101, .N = 3, .gate = true},
    {.B = 1, .T = 65, .N = 4},
    {.B = 1, .T = 40, .N = 7, .gate = true},
    {.B = 1, .T = 9, .N = 70, .gate = true},
    {.B = 1, .T = 450, .N = 1, .lengths = {130, 0, 63, 1, 64, 192}},
    {.B = 1, .T = 450, .N = 1, .gate = true, .lengths = {130, 0, 63, 1, 64, 192}},
    {.B = 1, .T = 165, .N = 2, .gate = true, .lengths = {40, 32, 93}},
    {.B = 1, .T = 165, .N = 3, .lengths = {40, 32, 93}},
    {.B = 2, .T = 150, .N = 1, .gate = true, .key_heads = 2},
    {.B = 12, .T = 130, .N = 1},
};

TEST_F(DeltaProductFusedOnGpu, EqualsTheDefinitionAndTheBitsOfTwoKernels) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << wide(c));
    const auto in = fast(c);
    const auto got = alone(in);
    const auto want = ops::delta_product_definition(in_double(in));
    EXPECT_CLOSE_TO("o", got.o, want.o, 2e-2);
    EXPECT_CLOSE_TO("state", got.state, want.state, 2e-2);
    expect_bits(got, alone(in));
    expect_bits(got, with_kept(in));
  }
}

TEST_F(DeltaProductFusedOnGpu, AGateOfOneHasTheBitsOfNone) {
  for (const int64_t N : {1, 2, 3}) {
    auto in = fast({.B = 2, .T = 300 / N, .N = N, .gate = true});
    in.log_gate.zero_();
    const auto with = alone(in);
    in.log_gate = Tensor();
    expect_bits(with, alone(in));
  }
}

// Reflections: beta = 2. Random keys, whose products with each other are small, and keys of three
// dimensions, where bfloat16 operands may be off by a third: there it has the bits of two
// kernels.
TEST_F(DeltaProductFusedOnGpu, Reflections) {
  auto in = fast({.B = 1, .T = 256, .N = 1});
  in.beta.fill_(2);
  const auto want = ops::delta_product_definition(in_double(in));
  const auto got = alone(in);
  EXPECT_CLOSE_TO("o", got.o, want.o, 3e-2);
  EXPECT_CLOSE_TO("state", got.state, want.state, 3e-2);
  in.k.slice(-1, 3).zero_();
  const Tensor three = in.k.to(torch::kFloat32);
  in.k = (three / three.norm(2, -1, true)).to(torch::kBFloat16);
  expect_bits(alone(in), with_kept(in));
}

TEST_F(DeltaProductFusedOnGpu, GatesThatForgetEverything) {
  for (const float log_gate : {-std::numeric_limits<float>::infinity(), -200.f}) {
    SCOPED_TRACE(log_gate);
    auto in = fast({.B = 1, .T = 300, .N = 1, .gate = true});
    for (const int64_t t : {20, 21, 66, 128}) in.log_gate.select(1, t).fill_(log_gate);
    const auto want = ops::delta_product_definition(in_double(in));
    const auto got = alone(in);
    EXPECT_CLOSE_TO("o", got.o, want.o, 2e-2);
    EXPECT_CLOSE_TO("state", got.state, want.state, 2e-2);
  }
}

// Packed sequences end within a chunk; what lies behind is another's.
TEST_F(DeltaProductFusedOnGpu, NothingLeaksFromThePackedNeighbour) {
  auto in = fast({.B = 1, .T = 200, .N = 1, .gate = true, .lengths = {70, 130}});
  const auto want = alone(in);
  for (Tensor* x : {&in.q, &in.k, &in.v, &in.beta, &in.log_gate})
    x->slice(1, 70).fill_(std::numeric_limits<float>::quiet_NaN());
  const auto got = alone(in);
  EXPECT_TRUE(torch::equal(got.o.slice(1, 0, 70), want.o.slice(1, 0, 70)));
  EXPECT_TRUE(torch::equal(got.state[0], want.state[0]));
  EXPECT_TRUE(torch::isnan(got.state[1]).any().item<bool>());
}

// Slices of wider tensors: rows that do not lie close.
TEST_F(DeltaProductFusedOnGpu, RowsApart) {
  const auto close = fast({.B = 2, .T = 150, .N = 1});
  auto apart = moved(close);
  const auto within = [](const Tensor& x) {
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes[1] += 5, sizes.back() += 24;
    const Tensor room = torch::full(sizes, 7, x.options());
    const Tensor view = room.slice(1, 2, 2 + x.size(1)).slice(-1, 8, 8 + x.size(-1));
    view.copy_(x);
    return view;
  };
  apart.q = within(apart.q), apart.k = within(apart.k), apart.v = within(apart.v);
  const torch::NoGradGuard no_grad;
  const auto got = ops::delta_product(apart), want = ops::delta_product(moved(close));
  EXPECT_TRUE(torch::equal(got.o, want.o));
  EXPECT_TRUE(torch::equal(got.state, want.state));
}

}  // namespace
}  // namespace lrnn
