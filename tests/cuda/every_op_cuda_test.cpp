#include "tests/cuda/device.h"
#include "tests/ops/every_op.h"

namespace lrnn {
namespace {

struct EveryOpOnGpu : OnGpu {};
TEST_F(EveryOpOnGpu, AgreesWithItsDefinition) { expect_every_op_agrees(torch::kCUDA); }

}  // namespace
}  // namespace lrnn
