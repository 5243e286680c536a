#include <ATen/autocast_mode.h>

#include "ops/linears/linears.h"
#include "tests/close.h"
#include "tests/cuda/device.h"

// Small block-diagonal products on the GPU against products of matrices in double.
namespace lrnn {
namespace {

using torch::Tensor;
struct BlockLinearOnGpu : OnGpu {};

using Function = Tensor(const Tensor&, const Tensor&);

std::vector<Tensor> block_results(Function* function, const Tensor& x_, const Tensor& weight_,
                                  const Tensor& slope) {
  const Tensor x = x_.detach().requires_grad_(), weight = weight_.detach().requires_grad_();
  const Tensor y = function(x, weight);
  (y * slope.to(y.scalar_type())).sum().backward();
  return {y.detach(), x.grad(), weight.grad()};
}

struct BlockCase {
  std::vector<int64_t> leading;
  int64_t blocks, in, out;
};

const std::vector<BlockCase> kBlockCases = {
    {{1}, 1, 1, 1},    {{3, 5}, 64, 4, 4}, {{700}, 7, 4, 3}, {{2, 3, 9}, 5, 8, 2},
    {{5000}, 3, 5, 8}, {{0}, 3, 4, 4},     {{40}, 2, 9, 4},
};

TEST_F(BlockLinearOnGpu, EqualsTheDefinition) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const auto& c : kBlockCases) {
      SCOPED_TRACE(testing::Message() << dtype << " " << c.leading << " blocks " << c.blocks
                                      << " in " << c.in << " out " << c.out);
      torch::manual_seed(1);
      auto sizes = c.leading, slopes = c.leading;
      sizes.push_back(c.blocks * c.in);
      slopes.insert(slopes.end(), {c.blocks, c.out});
      const Tensor x = torch::randn(sizes, torch::kFloat64).to(dtype),
                   w = torch::randn({c.blocks, c.out, c.in}, torch::kFloat64).to(dtype),
                   slope = torch::randn(slopes, torch::kFloat64).to(dtype);
      const auto want = block_results(ops::block_linear_definition, x.to(torch::kFloat64),
                                      w.to(torch::kFloat64), slope.to(torch::kFloat64));
      const auto on_gpu = [&] {
        return block_results(ops::block_linear, x.cuda(), w.cuda(), slope.cuda());
      };
      const auto got = on_gpu(), again = on_gpu();
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_CLOSE_TO("result " + std::to_string(i), got[i], want[i], tolerance(dtype));
        EXPECT_TRUE(torch::equal(got[i], again[i])) << i;
      }
    }
}

TEST_F(BlockLinearOnGpu, FollowsAutocast) {
  const Tensor x = torch::randn({6, 12}, torch::kCUDA), w = torch::randn({3, 4, 4}, torch::kCUDA);
  at::autocast::set_autocast_enabled(torch::kCUDA, true);
  at::autocast::set_autocast_dtype(torch::kCUDA, torch::kBFloat16);
  const auto type = ops::block_linear(x, w).scalar_type();
  at::autocast::set_autocast_enabled(torch::kCUDA, false);
  at::autocast::clear_cache();
  EXPECT_EQ(type, torch::kBFloat16);
}

}  // namespace
}  // namespace lrnn
