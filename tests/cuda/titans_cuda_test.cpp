#include "tests/cuda/recurrence_cuda.h"
#include "tests/ops/titans_cases.h"

namespace lrnn {
namespace {

using namespace recurrence;
struct TitansOnGpu : OnGpu {};

TEST_F(TitansOnGpu, EqualsTheDefinition) {
  auto cases = odd_titans();
  // States that do not fit one block, keys that do not fit a warp's small tiles, whole and broken
  // chunks of eight.
  cases.push_back({.B = 1, .T = 19, .H = 2, .K = 128, .V = 130});
  cases.push_back({.B = 1, .T = 9, .H = 1, .K = 129, .V = 20});
  cases.push_back({.B = 2, .T = 8, .H = 1, .K = 300, .V = 9});
  cases.push_back({.B = 1, .T = 16, .H = 1, .K = 512, .V = 40, .q = false});
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const auto& c : cases) {
      SCOPED_TRACE(testing::Message() << dtype << " T " << c.T << " K " << c.K << " V " << c.V);
      expect_definition_on_gpu(kTitans, titans_problem(c, dtype), tolerance(dtype));
    }
}

TEST_F(TitansOnGpu, ExtremeGates) { expect_definition_on_gpu(kTitans, extreme_titans(), 1e-11); }

TEST_F(TitansOnGpu, NoTokensReturnTheState) {
  expect_definition_on_gpu(kTitans, titans_problem({.B = 3, .T = 0}), 0);
}

TEST_F(TitansOnGpu, CountsModuloTwoForever) {
  const Tensors in = titans_parity(20000);
  EXPECT_TRUE(torch::equal(on_gpu(kTitans.kernel)(in).at("o"), titans_parity_answers(in)));
}

}  // namespace
}  // namespace lrnn
