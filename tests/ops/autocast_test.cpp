#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include "ops/delta_product/case.h"
#include "ops/linears/linears.h"
#include "ops/read_at/read_at.h"
#include "ops/torch.h"
#include "tests/tangent.h"

// A state that is rounded at every step forgets what it counted: autocast ends where an op begins.
namespace lrnn::ops {
namespace {

class Autocast : public testing::Test {
 protected:
  void SetUp() override {
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    torch::manual_seed(1);
  }
  void TearDown() override { at::autocast::clear_cache(); }
  template <class F> static Tensor with_autocast(F&& f) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    const Tensor y = f();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    return y;
  }
  template <class F> static void expect_unrounded(const char* what, F&& f) {
    const Tensor want = f(), got = with_autocast(f);
    EXPECT_EQ(got.scalar_type(), torch::kFloat32) << what;
    EXPECT_TRUE(torch::equal(got, want)) << what;
  }
};

TEST_F(Autocast, LeavesARecurrenceAlone) {
  const DeltaProduct in = make_delta_product({.T = 9, .K = 8, .V = 8}, torch::kFloat32);
  expect_unrounded("the op", [&] { return delta_product(in).state; });
  expect_unrounded("its definition", [&] { return delta_product_definition(in).state; });
  // An input with a tangent takes the way through the definition.
  const DualLevel level;
  DeltaProduct dual = in;
  dual.k = at::_make_dual(in.k, torch::randn_like(in.k), int64_t(level.at));
  expect_unrounded("with a tangent", [&] { return delta_product(dual).state; });
}

TEST_F(Autocast, LeavesWhatReadsAStateAlone) {
  const Tensor q = torch::randn({3, 2, 8}), S = torch::randn({3, 2, 8, 4});
  expect_unrounded("read_state", [&] { return read_state(q, S, 0.3); });
  expect_unrounded("wide_matmul", [&] { return wide_matmul(q, q.transpose(1, 2)); });
}

}  // namespace
}  // namespace lrnn::ops
