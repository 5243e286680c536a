#include "tests/ops/every_op.h"

#include "kernels/dispatch.h"

namespace lrnn {
namespace {

// With the kernels of every instruction set that this machine has, down to those of any machine.
TEST(EveryOp, AgreesWithItsDefinition) {
  const kernels::Isa best = kernels::best_isa();
  for (const auto isa : kernels::kIsas) {
    if (!kernels::has_isa(isa)) continue;
    SCOPED_TRACE(kernels::name(isa));
    kernels::force_isa(isa);
    expect_every_op_agrees(torch::kCPU);
  }
  kernels::force_isa(best);
}

// An op that is off, or leaves something out, is noticed.
TEST(EveryOp, IsNotTakenAtItsWord) {
  auto problem = ops::every_op()[0].typical[0].on(torch::kFloat64);
  const auto kernel = problem.kernel;
  problem.kernel = [kernel](const ops::Tensors& x) {
    auto out = kernel(x);
    out["out o"] = out["out o"] * 1.001;
    return out;
  };
  auto a = ops::agreement(problem, torch::kCPU);
  EXPECT_GT(a.results, 1e-4);
  EXPECT_GT(a.gradients, 1e-4);
  problem.kernel = [kernel](const ops::Tensors& x) {
    auto out = kernel(x);
    out.erase("out state");
    return out;
  };
  EXPECT_TRUE(std::isnan(ops::agreement(problem, torch::kCPU).results));
}

}  // namespace
}  // namespace lrnn
