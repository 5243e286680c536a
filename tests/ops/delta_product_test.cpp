#include "ops/delta_product/delta_product.h"

#include "base/error.h"
#include "tests/close.h"
#include "tests/ops/delta_product_definition.h"

// The kernel against the definition, in outputs and every gradient.
namespace lrnn {
namespace {

using torch::Tensor;

const std::vector<Case> kMoreCases = {
    // Taken two steps at a time: tokens that end between the two, odd ends, several segments.
    {.B = 1, .T = 129, .N = 3, .H = 2, .K = 32, .V = 20, .gate = true},
    {.B = 1, .T = 35, .N = 1, .H = 1, .K = 67, .V = 33, .gate = true, .lengths = {1, 0, 17, 2, 15}},
    {.B = 2, .T = 67, .N = 4, .H = 1, .K = 17, .V = 64},
    {.B = 1, .T = 21, .N = 5, .H = 1, .K = 16, .V = 5, .gate = true, .q = false},
    // Heads that share keys.
    {.B = 2, .T = 35, .N = 2, .H = 6, .K = 16, .V = 8, .gate = true, .key_heads = 2},
    {.B = 1, .T = 67, .N = 1, .H = 3, .K = 64, .V = 20, .state = false, .key_heads = 1},
    {.B = 1, .T = 23, .H = 4, .K = 8, .V = 5, .q = false, .lengths = {5, 0, 18}, .key_heads = 2},
};
const std::vector<Case> kCases = and_more(odd_cases(), kMoreCases);

TEST(DeltaProduct, EqualsTheDefinitionInDouble) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c);
    expect_definition(make_inputs(c), tolerance(c.dtype));
  }
}

TEST(DeltaProduct, EqualsTheDefinitionInSinglePrecision) {
  for (Case c : kCases) {
    c.dtype = torch::kFloat32;
    SCOPED_TRACE(testing::Message() << c);
    expect_definition(make_inputs(c), c.cancels * tolerance(c.dtype));
  }
}

TEST(DeltaProduct, EqualsTheDefinitionOnBFloat16) {
  for (Case c : kCases) {
    c.dtype = torch::kBFloat16;
    SCOPED_TRACE(testing::Message() << c);
    const auto in = make_inputs(c);
    expect_definition(in, 1e-2);
    const auto out = ops::delta_product(in);
    EXPECT_EQ(out.state.scalar_type(), torch::kFloat32);
    if (c.q) {
      EXPECT_EQ(out.o.scalar_type(), torch::kBFloat16);
    }
    // The state itself never passes through bfloat16: it is as exact as from float32 inputs.
    EXPECT_CLOSE_TO("state", out.state, ops::delta_product_definition(in_double(in)).state,
                    c.cancels * tolerance(torch::kFloat32));
  }
}

TEST(DeltaProduct, ReflectionsAndExtremeGates) {
  for (const double log_gate : {0.0, -std::numeric_limits<double>::infinity(), -200.0})
    for (const Case& c : {Case{.T = 70, .N = 2, .K = 16, .V = 8, .gate = true},
                          Case{.B = 1, .T = 70, .N = 1, .H = 1, .K = 64, .V = 8, .gate = true}}) {
      auto in = make_inputs(c);
      in.beta.fill_(2);
      in.log_gate.select(1, 20).fill_(log_gate);
      in.log_gate.select(1, 21).fill_(log_gate);
      in.log_gate.select(1, 66).fill_(log_gate);
      SCOPED_TRACE(testing::Message() << c << " log_gate " << log_gate);
      expect_definition(in, 1e-11);
    }
}

TEST(DeltaProduct, AGateOfOneGivesTheBitsOfNoGate) {
  for (Case c : {Case{.T = 300, .N = 2, .K = 16, .V = 24, .gate = true, .dtype = torch::kFloat32},
                 Case{.T = 300, .N = 2, .K = 16, .V = 24, .gate = true, .dtype = torch::kBFloat16},
                 Case{.T = 65, .N = 1, .K = 64, .V = 24, .gate = true, .dtype = torch::kFloat32},
                 Case{.T = 33, .N = 3, .K = 32, .V = 24, .gate = true, .dtype = torch::kFloat32}}) {
    SCOPED_TRACE(testing::Message() << c);
    auto in = make_inputs(c);
    in.log_gate.zero_();
    auto with = everything(in, ops::delta_product);
    in.log_gate = Tensor();
    const auto without = everything(in, ops::delta_product);
    std::erase_if(with.tensors, [](const auto& x) { return x.first == "dlog_gate"; });
    for (size_t i = 0; i < without.tensors.size(); ++i)
      EXPECT_TRUE(torch::equal(with.tensors[i].second, without.tensors[i].second))
          << without.tensors[i].first;
  }
}

// One thread walks the heads of a sequence in turn, a stretch of each; with 32 every head is alone.
TEST(DeltaProduct, TheSameBitsForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const Case& c :
       {Case{.B = 1,
       .T = 400,
       .N = 1,
       .H = 5,
       .K = 32,
       .V = 32,
       .gate = true,
       .dtype = torch::kFloat32,
       .lengths = {39, 2, 300, 59}},
        Case{.B = 2, .T = 131, .N = 3, .H = 3, .K = 32, .V = 24},
        Case{.B = 1, .T = 131, .N = 2, .H = 6, .K = 32, .V = 24, .key_heads = 2},
        Case{.B = 1, .T = 200, .N = 1, .H = 8, .K = 64, .V = 70, .dtype = torch::kBFloat16}}) {
    const auto in = make_inputs(c);
    at::set_num_threads(1);
    const auto one = everything(in, ops::delta_product);
    for (const int many : {2, 32}) {
      at::set_num_threads(many);
      SCOPED_TRACE(testing::Message() << c << " on " << many);
      const auto other = everything(in, ops::delta_product);
      for (size_t i = 0; i < one.tensors.size(); ++i)
        EXPECT_TRUE(torch::equal(one.tensors[i].second, other.tensors[i].second))
            << one.tensors[i].first;
    }
  }
  at::set_num_threads(threads);
}

TEST(DeltaProduct, SharedKeysGiveTheBitsOfRepeatedOnes) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (Case c : {Case{.B = 2, .T = 70, .N = 2, .H = 12, .K = 16, .V = 24, .gate = true},
                   Case{.B = 1, .T = 300, .H = 5, .K = 64, .V = 40, .lengths = {100, 0, 200}}}) {
      c.dtype = dtype, c.key_heads = c.H == 12 ? 4 : 1;
      SCOPED_TRACE(testing::Message() << c);
      const auto in = make_inputs(c);
      expect_bits_of_repeated(everything(in, ops::delta_product),
                              everything(repeated(in), ops::delta_product));
    }
}

TEST(DeltaProduct, NoTokensReturnTheState) {
  const auto in = make_inputs({.B = 3, .T = 0, .N = 2, .H = 2, .K = 4, .V = 5});
  const auto out = ops::delta_product(in);
  EXPECT_TRUE(torch::equal(out.state, in.state));
  EXPECT_EQ(out.o.sizes(), (std::vector<int64_t>{3, 0, 2, 5}));
  expect_definition(in, 0);
  auto without = in;
  without.state = Tensor();
  EXPECT_TRUE(torch::equal(ops::delta_product(without).state, torch::zeros_like(in.state)));
}

TEST(DeltaProduct, NonContiguousInputsAndGradients) {
  const Case c{.B = 2, .T = 9, .N = 2, .H = 3, .K = 8, .V = 12, .gate = true};
  const auto in = make_inputs(c);
  // Heads first in memory, every second element, and an expanded gradient.
  auto strided = in;
  strided.k = in.k.permute({3, 0, 1, 2, 4}).contiguous().permute({1, 2, 3, 0, 4});
  strided.v = torch::stack({in.v, in.v}, -1).select(-1, 0);
  strided.q = torch::cat({in.q, in.q}, -1).slice(-1, 0, c.K);
  strided.beta = in.beta.transpose(1, 3).contiguous().transpose(1, 3);
  strided.state = in.state.transpose(2, 3).contiguous().transpose(2, 3);
  ASSERT_FALSE(strided.k.is_contiguous() || strided.v.is_contiguous() || strided.q.is_contiguous());
  const auto want = ops::delta_product(in), got = ops::delta_product(strided);
  EXPECT_TRUE(torch::equal(got.o, want.o));
  EXPECT_TRUE(torch::equal(got.state, want.state));
  auto a = in, b = in;
  a.k = in.k.clone().requires_grad_(), b.k = in.k.clone().requires_grad_();
  ops::delta_product(a).o.sum().backward();
  ops::delta_product_definition(b).o.sum().backward();
  EXPECT_CLOSE("dk", a.k.grad(), b.k.grad());
}

TEST(DeltaProduct, PackedSequencesEqualThoseSequencesAlone) {
  const std::vector<int64_t> lengths = {7, 1, 0, 33, 290};
  const auto in = make_inputs({.B = 1,
                               .T = 331,
                               .N = 2,
                               .H = 2,
                               .K = 8,
                               .V = 8,
                               .gate = true,
                               .dtype = torch::kFloat32,
                               .lengths = lengths});
  const auto packed = ops::delta_product(in);
  for (int64_t s = 0, begin = 0; s < 5; begin += lengths[s++]) {
    const int64_t end = begin + lengths[s];
    const auto alone = ops::delta_product({.q = in.q.slice(1, begin, end),
                                           .k = in.k.slice(1, begin, end),
                                           .v = in.v.slice(1, begin, end),
                                           .beta = in.beta.slice(1, begin, end),
                                           .log_gate = in.log_gate.slice(1, begin, end),
                                           .state = in.state.slice(0, s, s + 1),
                                           .scale = {},
                                           .cu_seqlens = {}});
    EXPECT_TRUE(torch::equal(packed.o.slice(1, begin, end), alone.o)) << s;
    EXPECT_TRUE(torch::equal(packed.state.slice(0, s, s + 1), alone.state)) << s;
  }
}

// To the last bit, unless the cut parts two steps that are otherwise taken together.
TEST(DeltaProduct, TwoHalvesEqualTheWhole) {
  for (const Case& c : {Case{.B = 2, .T = 100, .N = 3, .H = 2, .K = 16, .V = 8, .gate = true},
                        Case{.B = 2, .T = 100, .N = 2, .H = 2, .K = 32, .V = 8, .gate = true},
                        Case{.B = 2, .T = 100, .N = 1, .H = 2, .K = 64, .V = 8, .gate = true}}) {
    SCOPED_TRACE(testing::Message() << c);
    const auto in = make_inputs(c);
    const auto whole = ops::delta_product(in);
    const bool parted = c.N * c.K >= 64 && c.N % 2 == 1;
    const auto expect = [&](const Tensor& got, const Tensor& want, bool to_the_bit) {
      EXPECT_CLOSE("", got, want);
      EXPECT_TRUE(!to_the_bit || torch::equal(got, want));
    };
    for (const int64_t cut : {0, 1, 37, 98, 99, 100}) {
      SCOPED_TRACE(cut);
      const auto first = ops::delta_product(part(in, 0, cut, in.state));
      const auto second = ops::delta_product(part(in, cut, 100, first.state));
      const bool to_the_bit = !parted || cut % 2 == 0;
      expect(torch::cat({first.o, second.o}, 1), whole.o, to_the_bit);
      expect(second.state, whole.state, to_the_bit);
    }
    SCOPED_TRACE("token by token");
    Tensor S = in.state;
    for (int64_t t = 0; t < 100; ++t) S = ops::delta_product(part(in, t, t + 1, S)).state;
    expect(S, whole.state, !parted);
  }
}

TEST(DeltaProduct, WithoutQueriesTheStateIsTheSame) {
  for (const Case& c :
       {Case{.T = 80, .N = 2, .K = 16, .V = 32, .gate = true, .dtype = torch::kFloat32},
        Case{.T = 81, .N = 1, .K = 64, .V = 9, .gate = true, .dtype = torch::kFloat32},
        Case{.T = 27, .N = 3, .K = 32, .V = 48, .gate = true, .dtype = torch::kFloat32}}) {
    SCOPED_TRACE(testing::Message() << c);
    auto in = make_inputs(c);
    const auto with = ops::delta_product(in);
    in.q = Tensor();
    const auto without = ops::delta_product(in);
    EXPECT_FALSE(without.o.defined());
    EXPECT_TRUE(torch::equal(with.state, without.state));
  }
}

TEST(DeltaProduct, GradientsAgreeWithFiniteDifferences) {
  torch::NoGradGuard no_grad;
  const auto in = make_inputs({.B = 1, .T = 35, .N = 2, .H = 1, .K = 3, .V = 2, .gate = true});
  const auto all = [&] {
    torch::AutoGradMode on(true);
    return everything(in, ops::delta_product);
  }();
  torch::manual_seed(7);  // the weights of everything()
  const Tensor wo = torch::randn({1, 35, 1, 2}, torch::kFloat64),
               ws = torch::randn({1, 1, 3, 2}, torch::kFloat64);
  const auto loss = [&](const ops::DeltaProduct& x) {
    const auto out = ops::delta_product(x);
    return ((out.o * wo).sum() + (out.state * ws).sum()).item<double>();
  };
  for (Tensor ops::DeltaProduct::*field :
       {&ops::DeltaProduct::q, &ops::DeltaProduct::k, &ops::DeltaProduct::v,
        &ops::DeltaProduct::beta, &ops::DeltaProduct::log_gate, &ops::DeltaProduct::state}) {
    // Along random directions: each checks every element at once.
    const size_t at = field == &ops::DeltaProduct::q          ? 2
                      : field == &ops::DeltaProduct::k        ? 3
                      : field == &ops::DeltaProduct::v        ? 4
                      : field == &ops::DeltaProduct::beta     ? 5
                      : field == &ops::DeltaProduct::log_gate ? 6
                                                              : 7;
    for (int trial = 0; trial < 5; ++trial) {
      const Tensor direction = torch::randn_like(in.*field);
      auto plus = in, minus = in;
      plus.*field = in.*field + 1e-5 * direction;
      minus.*field = in.*field - 1e-5 * direction;
      const double slope = (loss(plus) - loss(minus)) / 2e-5;
      const double want = (all.tensors[at].second * direction).sum().item<double>();
      EXPECT_NEAR(slope, want, 1e-7 * (1 + std::abs(want))) << all.tensors[at].first;
    }
  }
}

}  // namespace
}  // namespace lrnn
