#include "tests/close.h"
#include "tests/cuda/device.h"
#include "tests/ops/diagonal_cases.h"

// Gated linear attention and RWKV-7 on the GPU against their definitions.
namespace lrnn {
namespace {

using torch::Tensor;
struct DiagonalOnGpu : OnGpu {};

TensorMap everything_on_gpu(const DiagonalCase& c, const TensorMap& x) {
  return ops::moved(ops::everything(ops::moved(x, torch::kCUDA), diagonal_problem(c).kernel),
                    torch::kCPU);
}

void expect_diagonal(const DiagonalCase& c, const TensorMap& in, double limit) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);  // the definition's matrices are too small to share
  const TensorMap want = diagonal_everything(c, in, true);
  at::set_num_threads(threads);
  const TensorMap got = everything_on_gpu(c, in), again = everything_on_gpu(c, in);
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, x] : want) {
    EXPECT_CLOSE_TO(name, got.at(name), x, limit);
    EXPECT_TRUE(torch::equal(got.at(name), again.at(name))) << name;
  }
}

// And states that do not fit one block, and keys that do not fit a warp's small tiles.
std::vector<DiagonalCase> gpu_diagonal_cases() {
  auto out = diagonal_cases();
  for (const bool rwkv7 : {false, true}) {
    out.push_back({.rwkv7 = rwkv7, .B = 1, .T = 19, .H = 2, .K = 128, .V = 130});
    out.push_back({.rwkv7 = rwkv7, .B = 1, .T = 9, .H = 1, .K = 129, .V = 20});
    out.push_back({.rwkv7 = rwkv7, .B = 2, .T = 10, .H = 1, .K = 300, .V = 9});
  }
  // In bfloat16 these are chunks: with tokens, keys and values that fill nothing.
  out.push_back({.B = 2, .T = 80, .H = 2, .K = 64, .V = 64, .state = false});
  out.push_back({.B = 1, .T = 97, .H = 2, .K = 128, .V = 130});
  out.push_back({.B = 1, .T = 223, .H = 2, .K = 41, .V = 19, .lengths = {100, 3, 120}});
  // A token more or less than a chunk or two, and a head more than fits a tile of columns.
  for (const int64_t T : {63, 64, 65, 128, 129})
    out.push_back({.B = 1, .T = T, .H = 2, .K = 64, .V = 64, .state = T % 2 == 1});
  out.push_back({.B = 1, .T = 129, .H = 3, .K = 72, .V = 200});
  out.push_back(
      {.B = 1, .T = 710, .H = 1, .K = 128, .V = 66, .lengths = {64, 0, 65, 63, 1, 128, 389}});
  out.push_back({.rwkv7 = true, .B = 2, .T = 80, .H = 2, .K = 64, .V = 64, .state = false});
  out.push_back({.rwkv7 = true, .B = 3, .T = 17, .H = 1, .K = 32, .V = 32});
  out.push_back({.rwkv7 = true, .B = 1, .T = 97, .H = 2, .K = 128, .V = 128});
  out.push_back({.rwkv7 = true, .B = 1, .T = 45, .H = 3, .K = 41, .V = 19});
  return out;
}

TEST_F(DiagonalOnGpu, EqualsTheDefinition) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (DiagonalCase c : gpu_diagonal_cases()) {
      c.dtype = dtype;
      SCOPED_TRACE(testing::Message() << c);
      expect_diagonal(c, diagonal_inputs(c), tolerance(dtype));
    }
}

TEST_F(DiagonalOnGpu, ExtremeDecays) {
  with_extreme_decays([](const auto& c, const auto& in) { expect_diagonal(c, in, 1e-11); });
}

// Nothing is divided by a decay, so chunks take every one of them.
TEST_F(DiagonalOnGpu, ExtremeDecaysInChunks) {
  for (const bool rwkv7 : {false, true}) {
    const DiagonalCase c{.rwkv7 = rwkv7, .T = 150, .K = 48, .V = 70, .dtype = torch::kBFloat16};
    auto in = diagonal_inputs(c);
    in[c.decay()].select(1, 20).fill_(-std::numeric_limits<double>::infinity());
    in[c.decay()].slice(1, 70, 75).fill_(-200), in[c.decay()].slice(1, 90, 140).fill_(0);
    expect_diagonal(c, in, 1e-2);
  }
}

// Decays of 1 and of 0 wherever a chunk of 64 tokens is parted, and over whole blocks of 16.
TEST_F(DiagonalOnGpu, ExtremeDecaysWhereChunksAreParted) {
  const DiagonalCase c{.T = 260, .K = 64, .V = 64, .dtype = torch::kBFloat16};
  auto in = diagonal_inputs(c);
  const double forget = -std::numeric_limits<double>::infinity();
  auto& decay = in[c.decay()];
  for (const int64_t t : {0, 1, 15, 16, 31, 32, 48, 63, 64, 96, 100, 128, 129, 256})
    decay.select(1, t).slice(-1, t % 3, c.K, 3).fill_(forget);
  decay.slice(1, 144, 176).slice(-1, 0, 32).fill_(0), decay.slice(1, 192, 256).fill_(0);
  decay.slice(1, 176, 192).slice(-1, 40).fill_(forget);
  expect_diagonal(c, in, 1e-2);
}

// Decays of 1, none and all of kk removed: without decay, a = 1 and 2 project and reflect.
TEST_F(DiagonalOnGpu, Rwkv7InChunksRemovesNothingAndAll) {
  for (const double rate : {0., 1., 2.}) {
    const DiagonalCase c{.rwkv7 = true, .T = 150, .K = 64, .V = 70, .dtype = torch::kBFloat16};
    auto in = diagonal_inputs(c);
    in["a"].fill_(rate), in[c.decay()].fill_(0);
    SCOPED_TRACE(rate);
    expect_diagonal(c, in, 1e-2);
  }
}

// Errors do not grow from chunk to chunk.
TEST_F(DiagonalOnGpu, Rwkv7InChunksOverALongSequence) {
  const DiagonalCase c{
      .rwkv7 = true, .B = 1, .T = 4096, .H = 1, .K = 64, .V = 64, .dtype = torch::kBFloat16};
  auto in = diagonal_inputs(c);
  in[c.decay()].mul_(0.05), in["a"].mul_(0.5);  // it remembers hundreds of tokens
  expect_diagonal(c, in, 1e-2);
}

// A loss of the final state alone: no gradient of the outputs comes.
TEST_F(DiagonalOnGpu, Rwkv7InChunksForTheStateAlone) {
  const DiagonalCase c{.rwkv7 = true, .T = 40, .K = 64, .V = 64, .dtype = torch::kBFloat16};
  const auto gradients = [&](const torch::Device& to, torch::Dtype wide, bool definition) {
    auto x = diagonal_inputs(c);
    for (auto& [name, tensor] : x)
      if (tensor.defined())
        tensor = (definition ? tensor.to(wide) : tensor).to(to).detach().requires_grad_();
    run_diagonal(c, x, definition).second.square().sum().backward();
    TensorMap out;
    for (auto& [name, tensor] : x)
      if (tensor.defined() && tensor.grad().defined()) out[name] = tensor.grad();
    return out;
  };
  const auto want = gradients(torch::kCPU, torch::kFloat64, true),
             got = gradients(torch::kCUDA, torch::kFloat32, false);
  for (const auto& [name, x] : want) {
    if (name == c.query()) continue;  // nothing, or zeros
    EXPECT_CLOSE_TO(name, got.at(name), x, 1e-2);
  }
}

TEST_F(DiagonalOnGpu, NoTokensReturnTheState) {
  for (const bool rwkv7 : {false, true}) {
    const DiagonalCase c{.rwkv7 = rwkv7, .B = 3, .T = 0};
    expect_diagonal(c, diagonal_inputs(c), 0);
  }
}

// Reflections and sign flips are exact however long.
TEST_F(DiagonalOnGpu, CountsModuloTwoForever) {
  const int64_t T = 20000;
  torch::manual_seed(3);
  const auto on = [](const Tensor& x) { return x.to(torch::kCUDA); };
  const Tensor bit = torch::randint(2, {1, T, 1, 1}, torch::kInt64);
  const Tensor want = 1 - 2 * bit.cumsum(1).remainder(2).to(torch::kFloat32);
  const Tensor flips = bit.to(torch::kFloat32), none = torch::zeros({1, T, 1, 1}),
               one = torch::ones({1, T, 1, 1});
  const auto gla = ops::gated_linear_attention({.q = on(one),
                                                .k = on(none),
                                                .v = on(none),
                                                .log_gate = on(-200 * flips),
                                                .state = on(torch::ones({1, 1, 1, 1})),
                                                .scale = 1,
                                                .negative = true,
                                                .cu_seqlens = {}});
  EXPECT_TRUE(torch::equal(gla.o.cpu(), want));
  const auto rwkv7 = ops::rwkv7({.r = on(one),
                                 .log_w = on(none),
                                 .k = on(none),
                                 .v = on(none),
                                 .kk = on(one),
                                 .a = on(2 * flips),
                                 .state = on(torch::ones({1, 1, 1, 1})),
                                 .scale = 1,
                                 .cu_seqlens = {}});
  EXPECT_TRUE(torch::equal(rwkv7.o.cpu(), want));
}

}  // namespace
}  // namespace lrnn
