#include "tests/cuda/delta_product_cuda_cases.h"

// The kernel for a few micro-steps from a state, where nobody asks for gradients, against the
// definition.
namespace lrnn {
namespace {

struct DeltaProductFewStepsOnGpu : OnGpu {};

TEST_F(DeltaProductFewStepsOnGpu, EqualsTheDefinition) {
  const torch::InferenceMode no_gradients;
  for (Case c : std::vector<Case>{
           {.B = 1, .T = 1, .H = 8, .K = 128, .V = 128},
           {.B = 40, .T = 1, .H = 2, .K = 128, .V = 128, .gate = true},
           {.B = 3, .T = 1, .N = 3, .H = 3, .K = 128, .V = 36, .gate = true},
           {.B = 2, .T = 2, .N = 4, .H = 1, .K = 40, .V = 4, .state = false},
           {.B = 2, .T = 8, .H = 2, .K = 256, .V = 64, .gate = true},
           {.B = 2, .T = 3, .N = 2, .H = 2, .K = 33, .V = 96, .q = false},
           {.B = 1, .T = 1, .H = 2, .K = 130, .V = 132, .gate = true},
           {.B = 1, .T = 1, .H = 2, .K = 64, .V = 33}}) {  // the last has no such kernel
    c.dtype = torch::kBFloat16, c.wide_beta = true;
    SCOPED_TRACE(testing::Message() << c);
    const auto in = make_inputs(c);
    const auto move = [](const ops::DeltaProduct& from, auto&& to) {
      ops::DeltaProduct out = from;
      for (auto* x : {&out.q, &out.k, &out.v, &out.beta, &out.log_gate, &out.state})
        if (x->defined()) *x = to(x->detach());
      return out;
    };
    const auto want = ops::delta_product_definition(
        move(in, [](const torch::Tensor& x) { return x.to(torch::kFloat64); }));
    const auto on = move(in, [](const torch::Tensor& x) { return x.cuda(); });
    const auto got = ops::delta_product(on), again = ops::delta_product(on);
    EXPECT_CLOSE_TO("state", got.state, want.state, 1e-5);
    EXPECT_TRUE(torch::equal(got.state, again.state));
    if (!c.q) continue;
    EXPECT_CLOSE_TO("o", got.o, want.o, 1e-2);
    EXPECT_TRUE(torch::equal(got.o, again.o));
  }
}

}  // namespace
}  // namespace lrnn
