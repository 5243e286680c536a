#include "base/error.h"
#include "tests/cuda/recurrence_cuda.h"
#include "tests/ops/ttt_cases.h"

namespace lrnn {
namespace {

using namespace recurrence;
struct TttOnGpu : OnGpu {};

// But for heads of one channel, whose norm is 0 and some gradients with it: multiplied and added in
// one rounding they are as small as that, and not 0.
TEST_F(TttOnGpu, EqualsTheDefinition) {
  auto cases = odd_ttt();
  std::erase_if(cases, [](const TttCase& c) { return c.D == 1; });
  cases.push_back({.B = 2, .T = 40, .H = 1, .D = 80, .mini_batch = 16});
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const auto& c : cases) {
      SCOPED_TRACE(testing::Message()
                   << dtype << " T " << c.T << " D " << c.D << " mini-batch " << c.mini_batch);
      expect_definition_on_gpu(ttt_op(c.mini_batch), ttt_problem(c, dtype), tolerance(dtype));
    }
}

// The largest head of models there is room for.
TEST_F(TttOnGpu, HeadsOf128) {
  const Tensors in =
      ttt_problem({.B = 1, .T = 35, .H = 2, .D = 128, .mini_batch = 16}, torch::kFloat32);
  expect_definition_on_gpu(ttt_op(16), in, 1e-5);
}

TEST_F(TttOnGpu, ExtremeSteps) {
  for (const Tensors& in : extreme_ttt()) expect_definition_on_gpu(ttt_op(4), in, 1e-9);
}

TEST_F(TttOnGpu, NoTokensReturnTheState) {
  expect_definition_on_gpu(ttt_op(4), ttt_problem({.B = 3, .T = 0}), 0);
}

TEST_F(TttOnGpu, CountsModuloTwoForever) {
  const Tensors in = ttt_parity(20000);
  EXPECT_TRUE(ttt_follows(in, on_gpu(ttt_op(1, kTttParityEps).kernel)(in).at("o")));
}

TEST_F(TttOnGpu, SaysWhatItHasNoRoomFor) {
  const Tensors in = ttt_problem({.B = 1, .T = 3, .H = 1, .D = 300}, torch::kFloat32);
  try {
    on_gpu(ttt_op(4).kernel)(in);
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("no room for heads of 300 channels"), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace lrnn
