#include "ops/delta_product/delta_product.h"
#include "tests/ops/delta_product_definition.h"

// The delta product with a gate per key channel, against the definition and against itself.
namespace lrnn {
namespace {

using torch::Tensor;

Case channels(Case c) {
  c.gate = c.channels = true;
  return c;
}

// Sizes that fill no vector, chunks and segments cut anywhere, with and without state and outputs.
std::vector<Case> cases() {
  std::vector<Case> out = {
      {.B = 1, .T = 1, .N = 1, .H = 1, .K = 1, .V = 1, .cancels = 4},
      {.B = 2, .T = 2, .N = 2, .H = 3, .K = 3, .V = 1},
      {.B = 1, .T = 63, .N = 3, .H = 2, .K = 16, .V = 3},
      {.B = 1, .T = 64, .N = 1, .H = 2, .K = 32, .V = 32, .state = false},
      {.B = 1, .T = 65, .N = 4, .H = 1, .K = 3, .V = 16},
      {.B = 1, .T = 129, .N = 2, .H = 1, .K = 16, .V = 64},
      {.B = 1, .T = 63, .N = 1, .H = 1, .K = 64, .V = 128, .state = false},
      {.B = 1, .T = 65, .N = 1, .H = 2, .K = 128, .V = 32, .q = false},
      {.B = 2, .T = 129, .N = 1, .H = 2, .K = 1, .V = 3, .q = false},
      {.B = 1, .T = 270, .N = 1, .H = 1, .K = 5, .V = 40},
      {.B = 1, .T = 2, .N = 40, .H = 1, .K = 8, .V = 8, .cancels = 4},
      {.B = 1, .T = 23, .N = 2, .H = 2, .K = 4, .V = 20, .lengths = {5, 0, 17, 1}},
      {.B = 1, .T = 290, .N = 1, .H = 1, .K = 4, .V = 6, .lengths = {10, 260, 20}},
      // Two steps at a time: a gate between the two, or before the first alone; odd ends.
      {.B = 1, .T = 129, .N = 3, .H = 2, .K = 32, .V = 20},
      {.B = 1, .T = 35, .N = 1, .H = 1, .K = 67, .V = 33, .lengths = {1, 0, 17, 2, 15}},
      {.B = 2, .T = 67, .N = 4, .H = 1, .K = 17, .V = 64},
      {.B = 1, .T = 21, .N = 5, .H = 1, .K = 16, .V = 5, .q = false},
      // Heads that share keys have gates of their own.
      {.B = 2, .T = 35, .N = 2, .H = 6, .K = 16, .V = 8, .key_heads = 2},
      {.B = 1, .T = 67, .N = 1, .H = 3, .K = 64, .V = 20, .state = false, .key_heads = 1},
      {.B = 1, .T = 23, .H = 4, .K = 8, .V = 5, .q = false, .lengths = {5, 0, 18}, .key_heads = 2},
  };
  for (Case& c : out) c = channels(c);
  return out;
}

void expect_bits(const Everything& got, const Everything& want,
                 const std::vector<std::string>& names = {}) {
  size_t seen = 0;
  for (const auto& [name, x] : want.tensors)
    for (const auto& [same, y] : got.tensors)
      if (same == name && (names.empty() || std::count(names.begin(), names.end(), name))) {
        EXPECT_TRUE(torch::equal(x, y)) << name;
        ++seen;
      }
  EXPECT_EQ(seen, names.empty() ? want.tensors.size() : names.size());
}

TEST(DeltaProductChannels, EqualsTheDefinition) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (Case c : cases()) {
      c.dtype = dtype;
      SCOPED_TRACE(testing::Message() << c);
      expect_definition(make_inputs(c),
                        dtype == torch::kBFloat16 ? 1e-2 : c.cancels * tolerance(dtype));
    }
}

// Reflections behind gates of exactly 1, of next to nothing and of nothing: of a whole token, and
// of every third channel of others.
TEST(DeltaProductChannels, ReflectionsAndExtremeGates) {
  for (const double log_gate : {0.0, -100.0, -800.0, -std::numeric_limits<double>::infinity()})
    for (const Case& c : {Case{.T = 70, .N = 2, .K = 16, .V = 8},
                          Case{.B = 1, .T = 70, .N = 1, .H = 1, .K = 67, .V = 8}}) {
      auto in = make_inputs(channels(c));
      in.beta.fill_(2);
      for (const int64_t t : {20, 21, 66}) in.log_gate.select(1, t).fill_(log_gate);
      for (const int64_t t : {0, 5, 31, 32, 69})
        in.log_gate.select(1, t).slice(-1, 1, c.K, 3).fill_(log_gate);
      SCOPED_TRACE(testing::Message() << c << " log_gate " << log_gate);
      expect_definition(in, 1e-11);
    }
  auto in = make_inputs(channels({.T = 70, .N = 1, .K = 64, .V = 8, .dtype = torch::kFloat32}));
  in.beta.fill_(2), in.log_gate.fill_(-100);
  expect_definition(in, tolerance(torch::kFloat32));
}

// Each by itself, in single precision: the gradient of a gate is as small as the gate.
TEST(DeltaProductChannels, GradientsBehindAStrongDecayKeepTheirDigits) {
  auto in = make_inputs(channels(
      {.B = 1, .T = 40, .N = 1, .H = 1, .K = 8, .V = 16, .dtype = torch::kFloat32, .beta = 1}));
  in.log_gate = -30 * torch::rand_like(in.log_gate);
  const Tensor got = everything(in, ops::delta_product).tensors.at(6).second.to(torch::kFloat64),
               want = everything(in_double(in), ops::delta_product_definition).tensors.at(6).second;
  // Sums of 16 products of either sign: all but a few keep five digits.
  const Tensor off = (got - want).abs() / want.abs();
  EXPECT_LT(off.median().item<double>(), 1e-5);
  EXPECT_LT(off.quantile(0.99).item<double>(), 1e-3);
}

TEST(DeltaProductChannels, GatesOfOneGiveTheBitsOfNoGate) {
  for (const Case& c : {Case{.T = 300, .N = 2, .K = 16, .V = 24, .dtype = torch::kFloat32},
                        Case{.T = 300, .N = 2, .K = 16, .V = 24, .dtype = torch::kBFloat16},
                        Case{.T = 65, .N = 1, .K = 64, .V = 24, .dtype = torch::kFloat32},
                        Case{.T = 33, .N = 3, .K = 33, .V = 24, .dtype = torch::kFloat32}}) {
    SCOPED_TRACE(testing::Message() << c);
    auto in = make_inputs(channels(c));
    in.log_gate.zero_();
    const auto with = everything(in, ops::delta_product);
    in.log_gate = Tensor();
    // The gradients of keys and queries are added up in another order.
    expect_bits(with, everything(in, ops::delta_product),
                {"o", "final state", "dv", "dbeta", "dstate"});
  }
}

TEST(DeltaProductChannels, EqualGatesAreOneGateOfTheHead) {
  for (const Case& c : {Case{.T = 70, .N = 2, .K = 16, .V = 24}, Case{.T = 70, .N = 1, .K = 64}}) {
    auto one = make_inputs(channels(c)), every = one;
    one.log_gate = one.log_gate.select(-1, 0).contiguous();
    every.log_gate = one.log_gate.unsqueeze(-1).expand({-1, -1, -1, c.K});
    const auto want = everything(one, ops::delta_product),
               got = everything(every, ops::delta_product);
    for (size_t i = 0; i < want.tensors.size(); ++i) {
      const auto& [name, x] = want.tensors[i];
      const Tensor& y = got.tensors[i].second;
      EXPECT_CLOSE(name, name == "dlog_gate" ? y.sum(-1) : y, x);
    }
  }
}

TEST(DeltaProductChannels, TheSameBitsForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const Case& c : {Case{.B = 1,
                       .T = 400,
                       .N = 1,
                       .H = 5,
                       .K = 32,
                       .V = 32,
                       .dtype = torch::kFloat32,
                       .lengths = {39, 2, 300, 59}},
                        Case{.B = 1, .T = 131, .N = 2, .H = 6, .K = 32, .V = 24, .key_heads = 2}}) {
    const auto in = make_inputs(channels(c));
    at::set_num_threads(1);
    const auto one = everything(in, ops::delta_product);
    for (const int many : {2, 32}) {
      at::set_num_threads(many);
      SCOPED_TRACE(testing::Message() << c << " on " << many);
      expect_bits(everything(in, ops::delta_product), one);
    }
  }
  at::set_num_threads(threads);
}

TEST(DeltaProductChannels, SharedKeysGiveTheBitsOfRepeatedOnes) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16}) {
    Case c{.B = 2, .T = 70, .N = 2, .H = 12, .K = 16, .V = 24, .dtype = dtype, .key_heads = 4};
    const auto in = make_inputs(channels(c));
    expect_bits_of_repeated(everything(in, ops::delta_product),
                            everything(repeated(in), ops::delta_product));
  }
}

TEST(DeltaProductChannels, PackedSequencesEqualThoseSequencesAlone) {
  const std::vector<int64_t> lengths = {7, 1, 0, 33, 290};
  const auto in = make_inputs(channels({.B = 1,
                                        .T = 331,
                                        .N = 2,
                                        .H = 2,
                                        .K = 8,
                                        .V = 8,
                                        .dtype = torch::kFloat32,
                                        .lengths = lengths}));
  const auto packed = ops::delta_product(in);
  for (int64_t s = 0, begin = 0; s < 5; begin += lengths[s++]) {
    const int64_t end = begin + lengths[s];
    const auto alone = ops::delta_product(part(in, begin, end, in.state.slice(0, s, s + 1)));
    EXPECT_TRUE(torch::equal(packed.o.slice(1, begin, end), alone.o)) << s;
    EXPECT_TRUE(torch::equal(packed.state.slice(0, s, s + 1), alone.state)) << s;
  }
}

// To the last bit, unless the cut parts two steps that are otherwise taken together.
TEST(DeltaProductChannels, TwoHalvesEqualTheWhole) {
  for (const Case& c : {Case{.B = 2, .T = 100, .N = 3, .H = 2, .K = 16, .V = 8},
                        Case{.B = 2, .T = 100, .N = 2, .H = 2, .K = 32, .V = 8},
                        Case{.B = 2, .T = 100, .N = 1, .H = 2, .K = 64, .V = 8}}) {
    SCOPED_TRACE(testing::Message() << c);
    const auto in = make_inputs(channels(c));
    const auto whole = ops::delta_product(in);
    for (const int64_t cut : {0, 1, 37, 98, 99, 100}) {
      SCOPED_TRACE(cut);
      const auto first = ops::delta_product(part(in, 0, cut, in.state));
      const auto second = ops::delta_product(part(in, cut, 100, first.state));
      const bool to_the_bit = c.N * c.K < 64 || c.N * cut % 2 == 0;
      const Tensor o = torch::cat({first.o, second.o}, 1);
      EXPECT_CLOSE("o", o, whole.o);
      EXPECT_CLOSE("state", second.state, whole.state);
      EXPECT_TRUE(!to_the_bit || (torch::equal(o, whole.o) && second.state.equal(whole.state)));
    }
  }
}

TEST(DeltaProductChannels, WithoutQueriesTheStateIsTheSame) {
  for (const Case& c : {Case{.T = 80, .N = 2, .K = 16, .V = 32, .dtype = torch::kFloat32},
                        Case{.T = 81, .N = 1, .K = 64, .V = 9, .dtype = torch::kFloat32},
                        Case{.T = 27, .N = 3, .K = 32, .V = 48, .dtype = torch::kFloat32}}) {
    SCOPED_TRACE(testing::Message() << c);
    auto in = make_inputs(channels(c));
    const auto with = ops::delta_product(in);
    in.q = Tensor();
    EXPECT_TRUE(torch::equal(with.state, ops::delta_product(in).state));
  }
}

// What it is for: one channel forgets at once, and another keeps what it was told.
TEST(DeltaProductChannels, AChannelForgetsAlone) {
  const Tensor eye = torch::eye(2).view({1, 2, 1, 1, 2});
  const auto out =
      ops::delta_product({.q = eye.squeeze(2),
                          .k = eye,
                          .v = torch::tensor({3.f, 5.f}).view({1, 2, 1, 1, 1}),
                          .beta = torch::ones({1, 2, 1, 1}),
                          .log_gate = torch::tensor({0.f, 0.f, -100.f, 0.f}).view({1, 2, 1, 2}),
                          .state = {},
                          .scale = 1.0,
                          .cu_seqlens = {}});
  EXPECT_TRUE(torch::equal(out.state.flatten(), torch::tensor({0.f, 5.f})));
}

}  // namespace
}  // namespace lrnn
