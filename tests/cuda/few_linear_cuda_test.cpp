#include "base/error.h"
#include "ops/linears/few_linear.h"
#include "ops/linears/linears.h"
#include "tests/close.h"
#include "tests/cuda/device.h"

namespace lrnn {
namespace {

using torch::Tensor;
struct FewLinearOnGpu : OnGpu {};

// Two products of one x, the first with many rows: the second adds to its gradient.
std::vector<Tensor> run(int64_t rows, int64_t D, int64_t n, torch::Dtype dtype,
                        torch::Device device, bool definition) {
  torch::manual_seed(3);
  const auto draw = [&](std::vector<int64_t> sizes) {
    return torch::randn(sizes, torch::kFloat64).to(torch::kBFloat16).to(dtype).to(device);
  };
  const Tensor x = draw({rows, D}).requires_grad_(), many = draw({16, D}).requires_grad_(),
               few = draw({n, D}).requires_grad_();
  const auto y = definition ? std::vector<Tensor>{torch::linear(x, many), torch::linear(x, few)}
                            : ops::linears(x, {many, few});
  ((y[0] * draw({rows, 16})).sum() + (y[1] * draw({rows, n})).sum()).backward();
  // And alone, where nothing is there to be added to.
  const Tensor again = x.detach().clone().requires_grad_();
  const Tensor z = definition ? torch::linear(again, few) : ops::linear(again, few);
  (z * draw({rows, n})).sum().backward();
  return {y[0], y[1], z, x.grad(), many.grad(), few.grad(), again.grad()};
}

TEST_F(FewLinearOnGpu, EqualsTheDefinition) {
  for (const auto [rows, D, n] : std::vector<std::array<int64_t, 3>>{{1, 8, 1},
                                                                     {5, 24, 2},
                                                                     {40, 128, 4},
                                                                     {700, 136, 3},
                                                                     {333, 256, 8},
                                                                     {9001, 128, 2},
                                                                     {33000, 64, 5},
                                                                     {0, 16, 3},
                                                                     {50, 12, 4},
                                                                     {50, 264, 4}})
    for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16}) {
      SCOPED_TRACE(cat(rows, " ", D, " ", n, " ", dtype));
      const auto want = run(rows, D, n, torch::kFloat64, torch::kCPU, true),
                 got = run(rows, D, n, dtype, torch::kCUDA, false),
                 again = run(rows, D, n, dtype, torch::kCUDA, false);
      // Sums over rows in bfloat16 leave with its precision, and dx is rounded twice.
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_CLOSE_TO(cat("tensor ", i), got[i], want[i], tolerance(dtype));
        EXPECT_TRUE(torch::equal(got[i], again[i])) << i;
      }
    }
}

TEST_F(FewLinearOnGpu, HasKernelsForTheUsualSizes) {
  const auto x = torch::zeros({10, 128}, torch::dtype(torch::kBFloat16).device(torch::kCUDA));
  const auto weight = [&](int64_t n) { return torch::zeros({n, 128}, x.options()); };
  for (const int64_t n : {1, 2, 4, 8}) EXPECT_TRUE(ops::has_few_rows(x, weight(n)));
  EXPECT_FALSE(ops::has_few_rows(x, weight(9)));
  EXPECT_FALSE(ops::has_few_rows(x.to(torch::kFloat64), weight(4)));
  EXPECT_FALSE(ops::has_few_rows(x.cpu(), weight(4).cpu()));
}

}  // namespace
}  // namespace lrnn
