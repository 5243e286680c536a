#include "tests/cuda/delta_product_cuda_cases.h"

// A gate per key channel (Kimi Delta Attention) on the GPU, against the definition and the CPU.
namespace lrnn {
namespace {

using torch::Tensor;
struct DeltaProductChannelGateOnGpu : OnGpu {};

// Sizes that fill no tile, chunks cut anywhere, with and without state and outputs.
const std::vector<Case> kChannelCases = {
    {.B = 1, .T = 1, .N = 1, .H = 1, .K = 1, .V = 1, .cancels = 4},
    {.B = 2, .T = 2, .N = 2, .H = 3, .K = 3, .V = 1},
    {.B = 1, .T = 63, .N = 3, .H = 2, .K = 16, .V = 3},
    {.B = 3, .T = 64, .N = 1, .H = 2, .K = 32, .V = 32, .state = false},
    {.B = 1, .T = 65, .N = 4, .H = 1, .K = 3, .V = 16},
    {.B = 1, .T = 129, .N = 2, .H = 1, .K = 16, .V = 64},
    {.B = 1, .T = 63, .N = 1, .H = 1, .K = 64, .V = 128, .state = false},
    {.B = 1, .T = 65, .N = 1, .H = 2, .K = 128, .V = 32, .q = false},
    {.B = 2, .T = 129, .N = 1, .H = 2, .K = 1, .V = 3, .q = false},
    {.B = 1, .T = 270, .N = 1, .H = 1, .K = 5, .V = 40},
    {.B = 1, .T = 2, .N = 40, .H = 1, .K = 8, .V = 8, .cancels = 4},
    {.B = 1, .T = 23, .N = 2, .H = 2, .K = 4, .V = 20, .lengths = {5, 0, 17, 1}},
    {.B = 1, .T = 17, .N = 1, .H = 2, .K = 200, .V = 130},
    {.B = 1, .T = 9, .N = 2, .H = 1, .K = 300, .V = 500},
    {.B = 2, .T = 35, .N = 2, .H = 6, .K = 16, .V = 8, .key_heads = 2},
    {.B = 1, .T = 67, .N = 1, .H = 3, .K = 64, .V = 20, .state = false, .key_heads = 1},
    {.B = 1, .T = 23, .H = 4, .K = 8, .V = 5, .q = false, .lengths = {5, 0, 18}, .key_heads = 2},
};

TEST_F(DeltaProductChannelGateOnGpu, EqualsTheDefinition) {
  for (Case c : kChannelCases)
    for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16}) {
      c = with_channels(c), c.dtype = dtype, c.accuracy = "exact";
      SCOPED_TRACE(testing::Message() << c);
      const auto in = make_inputs(c);
      const Everything want = defined_in_double(in), got = everything(in, on_gpu);
      expect_all_close(got, want, dtype == torch::kBFloat16 ? 1e-2 : c.cancels * tolerance(dtype));
      // The state never passes through bfloat16.
      const size_t state = c.q ? 1 : 0;
      EXPECT_CLOSE_TO("state", got.tensors[state].second, want.tensors[state].second,
                      c.cancels * tolerance(torch::kFloat32));
    }
}

// As much state as the kernels hold.
TEST_F(DeltaProductChannelGateOnGpu, ManyKeyChannels) {
  for (const auto& [K, dtype] : {std::pair{512, torch::kFloat64}, {1024, torch::kFloat32}}) {
    const auto in =
        make_inputs(with_channels({.B = 1, .T = 20, .H = 1, .K = K, .V = 9, .dtype = dtype}));
    expect_all_close(everything(in, on_gpu), defined_in_double(in), tolerance(dtype));
  }
}

// Reflections behind gates of exactly 1, of next to nothing and of nothing: of a whole token, and
// of every third channel of others.
TEST_F(DeltaProductChannelGateOnGpu, ReflectionsAndExtremeGates) {
  for (const double log_gate : {0.0, -100.0, -800.0, -std::numeric_limits<double>::infinity()})
    for (const Case& c :
         {Case{.T = 70, .N = 2, .K = 16, .V = 8}, Case{.B = 1, .T = 70, .H = 1, .K = 67, .V = 8}}) {
      auto in = make_inputs(with_channels(c));
      in.beta.fill_(2);
      for (const int64_t t : {20, 21, 66}) in.log_gate.select(1, t).fill_(log_gate);
      for (const int64_t t : {0, 5, 31, 32, 69})
        in.log_gate.select(1, t).slice(-1, 1, c.K, 3).fill_(log_gate);
      SCOPED_TRACE(testing::Message() << c << " log_gate " << log_gate);
      expect_all_close(everything(in, on_gpu), defined_in_double(in), 1e-11);
    }
}

// Each by itself, in single precision: the gradient of a gate is as small as the gate.
TEST_F(DeltaProductChannelGateOnGpu, GradientsBehindAStrongDecayKeepTheirDigits) {
  auto in = make_inputs(with_channels(
      {.B = 1, .T = 40, .N = 1, .H = 1, .K = 8, .V = 16, .dtype = torch::kFloat32, .beta = 1}));
  in.log_gate = -30 * torch::rand_like(in.log_gate);
  const Tensor got = everything(in, on_gpu).tensors.at(6).second.to(torch::kFloat64),
               want = everything(in_double(in), ops::delta_product_definition).tensors.at(6).second;
  const Tensor off = (got - want).abs() / want.abs();
  EXPECT_LT(off.median().item<double>(), 1e-5);
  EXPECT_LT(off.quantile(0.99).item<double>(), 1e-3);
}

TEST_F(DeltaProductChannelGateOnGpu, GatesOfOneGiveTheBitsOfNoGate) {
  for (const auto dtype : {torch::kFloat32, torch::kBFloat16}) {
    auto in = make_inputs(
        with_channels({.T = 300, .N = 2, .K = 40, .V = 24, .dtype = dtype, .accuracy = "exact"}));
    in.log_gate.zero_();
    auto with = everything(in, on_gpu);
    in.log_gate = Tensor();
    auto without = everything(in, on_gpu);
    // The gradients of keys and queries are added up in another order.
    const auto own = [](const auto& x) {
      return x.first == "dk" || x.first == "dq" || x.first == "dlog_gate";
    };
    std::erase_if(with.tensors, own), std::erase_if(without.tensors, own);
    expect_same_bits(with, without);
  }
}

TEST_F(DeltaProductChannelGateOnGpu, EqualGatesAreOneGateOfTheHead) {
  for (const Case& c : {Case{.T = 70, .N = 2, .K = 16, .V = 24}, Case{.T = 70, .N = 1, .K = 64}}) {
    auto one = make_inputs(with_channels(c)), every = one;
    one.log_gate = one.log_gate.select(-1, 0).contiguous();
    every.log_gate = one.log_gate.unsqueeze(-1).expand({-1, -1, -1, c.K});
    const auto want = everything(one, on_gpu), got = everything(every, on_gpu);
    for (size_t i = 0; i < want.tensors.size(); ++i) {
      const auto& [name, x] = want.tensors[i];
      const Tensor& y = got.tensors[i].second;
      EXPECT_CLOSE(name, name == "dlog_gate" ? y.sum(-1) : y, x);
    }
  }
}

TEST_F(DeltaProductChannelGateOnGpu, TheSameBitsTwiceAndInHalves) {
  const auto in = make_inputs(with_channels(
      {.B = 3, .T = 100, .N = 3, .H = 2, .K = 32, .V = 40, .dtype = torch::kFloat32}));
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

TEST_F(DeltaProductChannelGateOnGpu, SharedKeysGiveTheBitsOfRepeatedOnes) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16}) {
    const auto in = make_inputs(with_channels({.B = 2,
                                               .T = 70,
                                               .N = 2,
                                               .H = 12,
                                               .K = 16,
                                               .V = 24,
                                               .dtype = dtype,
                                               .accuracy = "exact",
                                               .key_heads = 4}));
    expect_bits_of_repeated(everything(in, on_gpu), everything(repeated(in), on_gpu));
  }
}

// A step of decoding keeps nothing and has a kernel of its own (few_steps.cu).
TEST_F(DeltaProductChannelGateOnGpu, Decodes) {
  const torch::NoGradGuard no_grad;
  for (const int64_t K : {32, 72, 128, 200})
    for (const int64_t N : {1, 2}) {
      const auto in = make_inputs(with_channels({.B = 3,
                                                 .T = 2,
                                                 .N = N,
                                                 .H = 6,
                                                 .K = K,
                                                 .V = 128,
                                                 .dtype = torch::kBFloat16,
                                                 .key_heads = 2}));
      SCOPED_TRACE(testing::Message() << K << " " << N);
      const auto got = on_gpu(in), want = ops::delta_product_definition(in_double(in));
      EXPECT_CLOSE_TO("o", got.o, want.o, 1e-2);
      EXPECT_CLOSE_TO("state", got.state, want.state, 1e-5);
    }
}

TEST_F(DeltaProductChannelGateOnGpu, EqualsTheCpu) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32}) {
    const auto in = make_inputs(with_channels(
        {.B = 2, .T = 333, .N = 2, .H = 4, .K = 48, .V = 40, .dtype = dtype, .key_heads = 2}));
    expect_all_close(everything(in, on_gpu), everything(in, ops::delta_product),
                     10 * tolerance(dtype));
  }
}

}  // namespace
}  // namespace lrnn
