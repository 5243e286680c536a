#include "ops/short_conv/short_conv.h"
#include "tests/cuda/device.h"
#include "tests/ops/unit_conv_cases.h"

namespace lrnn {
namespace {

struct UnitConvOnGpu : OnGpu {};

TEST_F(UnitConvOnGpu, EqualsTheDefinition) { expect_unit_conv(kUnitConvCases, torch::kCUDA); }

// The runs of tokens that a warp takes are longer where there are more.
TEST_F(UnitConvOnGpu, EqualsTheDefinitionOfManyTokens) {
  expect_unit_conv({{130, 67, 4, {32, 32, 32}, 64, 32, true}, {260, 256, 4, {8, 8, 8}, 16, 8}},
                   torch::kCUDA);
}

}  // namespace
}  // namespace lrnn
