#include "ops/node.h"
#include "ops/stack.h"
#include "tests/cuda/delta_product_cuda_cases.h"

// Sequences that are one chunk, from a state of zero and without a gate, against the definition.
namespace lrnn {
namespace {

using torch::Tensor;
struct DeltaProductOneChunkOnGpu : OnGpu {};

const std::vector<Case> kShortCases = {
    {.B = 3, .T = 40, .N = 2, .H = 2, .K = 128, .V = 128},  // as many micro-steps as blocks hold
    {.B = 2, .T = 17, .N = 1, .H = 3, .K = 128, .V = 64},
    {.B = 2, .T = 48, .N = 1, .H = 2, .K = 48, .V = 128},
    {.B = 2, .T = 64, .N = 1, .H = 1, .K = 64, .V = 64},
    {.B = 1, .T = 22, .N = 3, .H = 2, .K = 128, .V = 112},
    {.B = 2, .T = 26, .N = 3, .H = 1, .K = 128, .V = 128},
    {.B = 2, .T = 4, .N = 17, .H = 1, .K = 80, .V = 96},
    {.B = 2, .T = 29, .N = 2, .H = 2, .K = 128, .V = 128, .q = false},
};

ops::DeltaProduct short_problem(Case c) {
  c.dtype = torch::kBFloat16, c.state = false;
  auto in = make_inputs(c);
  in.beta = in.beta.to(torch::kFloat32), in.accuracy = "accurate";
  return in;
}

// It keeps what rounding left of the errors, and nothing else does.
bool is_one_chunk(const ops::DeltaProduct& in) {
  torch::jit::Stack stack;
  ops::push(stack, moved(in));
  stack.emplace_back(true);  // as for backward
  c10::Dispatcher::singleton()
      .findSchemaOrThrow("lrnn::delta_product_forward", "")
      .callBoxed(stack);
  const auto kept = stack.back().toTensorVector();
  const Tensor &errors = kept[0], &rests = kept[1];
  return rests.scalar_type() == torch::kBFloat16 && rests.numel() == errors.numel();
}

TEST_F(DeltaProductOneChunkOnGpu, EqualTheDefinition) {
  for (const Case& c : kShortCases) {
    SCOPED_TRACE(testing::Message() << c);
    const auto in = short_problem(c);
    ASSERT_TRUE(is_one_chunk(in));
    const Everything want = defined_in_double(in), got = everything(in, on_gpu);
    expect_all_close(got, want, 3e-3);
    const size_t state = c.q ? 1 : 0;
    EXPECT_CLOSE_TO("state", got.tensors[state].second, want.tensors[state].second, 1e-4);
    expect_same_bits(got, everything(in, on_gpu));
    torch::NoGradGuard no_grad;  // keeps nothing for backward, and computes the same
    EXPECT_TRUE(torch::equal(on_gpu(in).state, got.tensors[state].second));
  }
}

// As in training, where nobody asks for the state.
TEST_F(DeltaProductOneChunkOnGpu, WithoutAGradientOfTheState) {
  const auto outputs = [](ops::DeltaProductResult out) {
    out.state = Tensor();
    return out;
  };
  for (const Case& c : kShortCases) {
    if (!c.q) continue;
    SCOPED_TRACE(testing::Message() << c);
    const auto in = short_problem(c);
    const auto got = everything(in, [&](const ops::DeltaProduct& x) { return outputs(on_gpu(x)); });
    const auto want = everything(in_double(in), [&](const ops::DeltaProduct& x) {
      return outputs(ops::delta_product_definition(x));
    });
    expect_all_close(got, want, 3e-3);
  }
}

TEST_F(DeltaProductOneChunkOnGpu, OnlyWhereItIs) {
  const Case c = {.B = 1, .T = 40, .N = 2, .H = 1, .K = 128, .V = 128};
  const auto in = short_problem(c);
  EXPECT_TRUE(is_one_chunk(in));
  auto other = in;
  other.state = torch::zeros({1, 1, 128, 128});
  EXPECT_FALSE(is_one_chunk(other));
  other = in, other.log_gate = torch::zeros({1, 40, 1});
  EXPECT_FALSE(is_one_chunk(other));
  for (const char* precision : {"fast", "exact"}) {
    other = in, other.accuracy = precision;
    EXPECT_FALSE(is_one_chunk(other));
  }
  auto longer = c;
  longer.T = 41;
  EXPECT_FALSE(is_one_chunk(short_problem(longer)));
}

TEST_F(DeltaProductOneChunkOnGpu, AccurateAtBetaTwo) {
  const auto in =
      along_one_direction(short_problem({.B = 4, .T = 40, .N = 2, .H = 2, .K = 128, .V = 128}));
  ASSERT_TRUE(is_one_chunk(in));
  expect_near_exact(in);
}

// A value of beta of exactly 0 writes nothing and still has a gradient.
TEST_F(DeltaProductOneChunkOnGpu, BetaOfZero) {
  auto in = short_problem({.B = 2, .T = 40, .N = 2, .H = 2, .K = 64, .V = 128});
  for (const int64_t t : {0, 7, 39}) in.beta.select(1, t).zero_();
  expect_all_close(everything(in, on_gpu), defined_in_double(in), 6e-3);
}

}  // namespace
}  // namespace lrnn
