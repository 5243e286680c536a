#include "tests/cuda/recurrence_cuda.h"
#include "tests/ops/mlstm_cases.h"
#include "tests/ops/slstm_cases.h"

// The two cells of xLSTM on the GPU against their definitions.
namespace lrnn {
namespace {

using namespace recurrence;
struct SlstmOnGpu : OnGpu {};
struct MlstmOnGpu : OnGpu {};

// Sequences that share a block, of different lengths too, and a matrix that shared memory does not
// hold.
const std::vector<SlstmCase> kGpuSlstmCases = {
    {.B = 133, .T = 4, .H = 4, .D = 5},
    {.B = 1, .T = 9, .H = 1, .D = 130},
    {.B = 1, .T = 6, .H = 1, .D = 300, .bias = false, .state = false},
};

SlstmCase many_lengths() {
  SlstmCase c{.B = 1, .T = 0, .H = 2, .D = 4};
  for (int64_t s = 0; s < 270; ++s) c.lengths.push_back(s % 4), c.T += s % 4;
  return c;
}

TEST_F(SlstmOnGpu, EqualsTheDefinition) {
  auto cases = kSlstmCases;
  cases.insert(cases.end(), kGpuSlstmCases.begin(), kGpuSlstmCases.end());
  cases.push_back(many_lengths());
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const auto& c : cases) {
      SCOPED_TRACE(testing::Message() << dtype << " B " << c.B << " T " << c.T << " D " << c.D);
      expect_definition_on_gpu(kSlstm, slstm_problem(c, dtype), tolerance(dtype));
    }
}

TEST_F(SlstmOnGpu, SplitAnywhereIsTheWholeToTheBit) {
  const Tensors in = slstm_problem({.B = 2, .T = 40, .H = 2, .D = 9}, torch::kFloat32);
  const Function run = on_gpu(kSlstm.kernel);
  const Tensors whole = run(in);
  for (const int64_t cut : {0, 1, 17, 40}) {
    Tensors a = in, b = in;
    a["wx"] = in.at("wx").slice(1, 0, cut), b["wx"] = in.at("wx").slice(1, cut);
    const Tensors first = run(a);
    b["state"] = first.at("final");
    const Tensors second = run(b);
    EXPECT_TRUE(torch::equal(torch::cat({first.at("h"), second.at("h")}, 1), whole.at("h"))) << cut;
    EXPECT_TRUE(torch::equal(second.at("final"), whole.at("final"))) << cut;
  }
}

TEST_F(SlstmOnGpu, NoTokensReturnTheState) {
  expect_definition_on_gpu(kSlstm, slstm_problem({.B = 3, .T = 0, .H = 2, .D = 4}), 0);
}

// Chunks with and without a state, rows that fill no pack, tokens that fill no sixteen, and heads
// too large for chunks.
const std::vector<MlstmCase> kGpuMlstmCases = {
    {.B = 5, .T = 40, .H = 4, .K = 64, .V = 64, .state = false},
    {.B = 2, .T = 64, .H = 2, .K = 31, .V = 32, .state = false},
    {.B = 2, .T = 129, .H = 2, .K = 64, .V = 31},
    {.B = 1, .T = 90, .H = 1, .K = 17, .V = 63, .lengths = {17, 64, 0, 9}},
    {.B = 1, .T = 20, .H = 1, .K = 160, .V = 130},
    {.B = 2, .T = 129, .H = 2, .K = 128, .V = 96, .alike = true},
    {.B = 1, .T = 90, .H = 2, .K = 80, .V = 272, .lengths = {17, 64, 0, 9}, .alike = true},
    {.B = 1, .T = 200, .H = 1, .K = 512, .V = 64, .state = false, .alike = true},
};

TEST_F(MlstmOnGpu, EqualsTheDefinition) {
  auto cases = kMlstmCases;
  cases.insert(cases.end(), kGpuMlstmCases.begin(), kGpuMlstmCases.end());
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const auto& c : cases) {
      SCOPED_TRACE(testing::Message() << dtype << " T " << c.T << " K " << c.K << " V " << c.V);
      // h divides by |n . q|, which may nearly vanish.
      const double limit = dtype == torch::kFloat64   ? 1e-10
                           : dtype == torch::kFloat32 ? 1e-4
                                                      : 2e-2;
      expect_definition_on_gpu(kMlstm, mlstm_problem(c, dtype), limit);
    }
}

TEST_F(MlstmOnGpu, ExtremeGates) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32}) {
    Tensors in = mlstm_problem({.B = 1, .T = 200, .H = 1, .K = 4, .V = 4}, dtype);
    in["f"].slice(1, 20, 90).fill_(-30), in["f"].slice(1, 90, 140).fill_(100);
    in["i"].slice(1, 60, 61).fill_(300), in["i"].slice(1, 150, 170).fill_(-300);
    expect_definition_on_gpu(kMlstm, in, dtype == torch::kFloat64 ? 1e-10 : 1e-4);
  }
}

// The sum of the decays is large then, and the differences that weights are made of are not.
TEST_F(MlstmOnGpu, ForgettingEverythingCostsNoDigits) {
  Tensors in = mlstm_problem({.B = 2, .T = 60, .H = 2, .K = 16, .V = 16}, torch::kFloat32);
  in["f"].slice(1, 3, 9).fill_(-1e5);
  expect_definition_on_gpu(kMlstm, in, 1e-4);
}

TEST_F(MlstmOnGpu, NonContiguousInputs) {
  // On Hopper the second takes the copy engine.
  for (const auto& [dtype, T, D] :
       {std::tuple<torch::Dtype, int64_t, int64_t>{torch::kFloat32, 70, 20},
        {torch::kBFloat16, 200, 80}}) {
    Tensors in;
    for (const auto& [name, x] : mlstm_problem({.B = 2, .T = T, .H = 3, .K = D, .V = D}, dtype))
      in[name] = x.to(torch::kCUDA);
    Tensors strided = in;
    const Tensor both = torch::cat({in.at("q"), in.at("k")}, -1);
    strided["q"] = both.narrow(-1, 0, D), strided["k"] = both.narrow(-1, D, D);
    strided["v"] = in.at("v").transpose(1, 2).contiguous().transpose(1, 2);
    strided["i"] = torch::stack({in.at("i"), in.at("f")}, -1).select(-1, 0);
    ASSERT_FALSE(strided.at("q").is_contiguous());
    expect_same_bits(kMlstm.kernel(strided), kMlstm.kernel(in));
  }
}

// Rows that do not lie on 16 bytes.
TEST_F(MlstmOnGpu, RowsBetweenPacks) {
  Tensors in;
  for (const auto& [name, x] :
       mlstm_problem({.B = 1, .T = 150, .H = 2, .K = 96, .V = 96}, torch::kBFloat16))
    in[name] = x.to(torch::kCUDA);
  Tensors shifted = in;
  shifted["q"] = torch::cat({in.at("v").narrow(-1, 0, 1), in.at("q")}, -1).narrow(-1, 1, 96);
  expect_same_bits(kMlstm.kernel(shifted), kMlstm.kernel(in));
}

// Chunks bring whole rows, those of the next sequence too.
TEST_F(MlstmOnGpu, SequencesDoNotSeeEachOther) {
  Tensors in;
  for (const auto& [name, x] : mlstm_problem(
           {.B = 1, .T = 200, .H = 2, .K = 128, .V = 128, .lengths = {90, 110}}, torch::kBFloat16))
    in[name] = x.to(torch::kCUDA);
  Tensors poisoned = in;
  for (const char* name : {"q", "k", "v"}) {
    poisoned[name] = in.at(name).clone();
    poisoned[name].slice(1, 90).fill_(std::numeric_limits<float>::quiet_NaN());
  }
  const Tensors want = kMlstm.kernel(in), got = kMlstm.kernel(poisoned);
  EXPECT_TRUE(torch::equal(got.at("h").slice(1, 0, 90), want.at("h").slice(1, 0, 90)));
  for (const char* name : {"final C", "final n"})
    EXPECT_TRUE(torch::equal(got.at(name)[0], want.at(name)[0])) << name;
  EXPECT_TRUE(got.at("final C")[1].isnan().any().item<bool>());
}

TEST_F(MlstmOnGpu, NoTokensReturnTheState) {
  expect_definition_on_gpu(kMlstm, mlstm_problem({.B = 3, .T = 0, .H = 2, .K = 4, .V = 5}), 0);
}

}  // namespace
}  // namespace lrnn
