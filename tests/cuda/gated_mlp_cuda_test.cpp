#include "base/error.h"
#include "ops/gated_mlp/gated_mlp.h"
#include "ops/gpu.h"
#include "ops/node.h"
#include "tests/close.h"
#include "tests/cuda/device.h"

namespace lrnn {
namespace {

using torch::Tensor;
struct GatedMlpOnGpu : OnGpu {};

struct Problem {
  Tensor x, gate, up, down, dy;
  Problem(std::vector<int64_t> shape, int64_t hidden, torch::Dtype dtype, torch::Device device) {
    torch::manual_seed(5);
    const int64_t D = shape.back();
    const auto draw = [&](std::vector<int64_t> sizes, double by) {
      const Tensor t = torch::randn(sizes, torch::kFloat64) * by;
      return t.to(torch::kBFloat16).to(dtype).to(device);
    };
    x = draw(shape, 1), gate = draw({hidden, D}, 1 / std::sqrt(double(D)));
    up = draw({hidden, D}, 1 / std::sqrt(double(D)));
    down = draw({D, hidden}, 1 / std::sqrt(double(hidden))), dy = draw(shape, 1);
  }
};

Tensor definition(const Problem& p) {
  return torch::linear(torch::silu(torch::linear(p.x, p.gate)) * torch::linear(p.x, p.up), p.down);
}

std::vector<Tensor> run(std::vector<int64_t> shape, int64_t hidden, torch::Dtype dtype,
                        torch::Device device, bool by_definition) {
  Problem p(std::move(shape), hidden, dtype, device);
  for (Tensor* t : {&p.x, &p.gate, &p.up, &p.down}) t->requires_grad_();
  const Tensor y = by_definition ? definition(p) : ops::gated_mlp(p.x, p.gate, p.up, p.down);
  y.backward(p.dy);
  return {y, p.x.grad(), p.gate.grad(), p.up.grad(), p.down.grad()};
}

bool has_kernel(int64_t D, int64_t hidden) {
  static const auto op = ops::find_op<bool(const Tensor&, int64_t)>("lrnn::gated_mlp_fits");
  return op.call(torch::zeros({1, D}, torch::dtype(torch::kBFloat16).device(torch::kCUDA)), hidden);
}

// By the chip and the build and not by has_kernel, or a kernel that is never chosen would go
// unnoticed.
bool is_hopper() {
#ifdef LRNN_HOPPER
  if (chip_asked_for != 0) return false;
  const std::string name = ops::gpu()->name();
  for (const char* chip : {"H100", "H200", "H800", "H20"})
    if (name.find(chip) != std::string::npos) return true;
#endif
  return false;
}

TEST_F(GatedMlpOnGpu, EqualsTheDefinition) {
  const std::vector<std::pair<std::vector<int64_t>, int64_t>> shapes = {
      {{4096, 128}, 512}, {{5000, 128}, 64}, {{67, 77, 128}, 192}, {{2, 2100, 64}, 128},
      {{4111, 64}, 512},  {{300, 128}, 512}, {{4100, 96}, 128},    {{4100, 128}, 72}};
  for (const auto& [shape, hidden] : shapes)
    for (const auto dtype : {torch::kFloat32, torch::kBFloat16}) {
      SCOPED_TRACE(cat(torch::IntArrayRef(shape), " ", hidden, " ", dtype));
      const auto want = run(shape, hidden, torch::kFloat64, torch::kCPU, true),
                 got = run(shape, hidden, dtype, torch::kCUDA, false),
                 again = run(shape, hidden, dtype, torch::kCUDA, false);
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_CLOSE_TO(cat("tensor ", i), got[i], want[i], tolerance(dtype));
        EXPECT_TRUE(torch::equal(got[i], again[i])) << i;
      }
    }
}

// The kernels alone, on rows that do not fill their blocks, and rows of a wider matrix.
TEST_F(GatedMlpOnGpu, KernelsFollowAnyRows) {
  if (!is_hopper()) GTEST_SKIP() << "the kernel is for Hopper";
  using Forward = Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
  using Backward = std::tuple<Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&,
                                                      const Tensor&, const Tensor&);
  const auto forward = ops::find_op<Forward>("lrnn::gated_mlp");
  const auto backward = ops::find_op<Backward>("lrnn::gated_mlp_backward");
  for (const int64_t D : {64, 128})
    for (const int64_t hidden : {64, 256})
      for (const int64_t rows : {0, 1, 17, 64, 65, 127, 128, 129, 1000}) {
        SCOPED_TRACE(cat(rows, " ", D, " ", hidden));
        const Problem want({rows, D}, hidden, torch::kFloat64, torch::kCPU),
            p({rows, D}, hidden, torch::kBFloat16, torch::kCUDA);
        const auto in_wider = [](const Tensor& t) {
          return torch::cat({t, t}, 1).narrow(1, t.size(1), t.size(1));
        };
        const Tensor y = forward.call(in_wider(p.x), p.gate, p.up, p.down);
        const auto [dx, h, dboth] =
            backward.call(in_wider(p.dy), in_wider(p.x), p.gate, p.up, p.down);
        if (rows == 0) continue;
        const Tensor gate = torch::linear(want.x, want.gate), up = torch::linear(want.x, want.up),
                     units = torch::silu(gate) * up, dunits = want.dy.matmul(want.down);
        const Tensor s = torch::sigmoid(gate), dup = dunits * torch::silu(gate),
                     dgate = dunits * up * s * (1 + gate * (1 - s));
        const double close = tolerance(torch::kBFloat16);
        EXPECT_CLOSE_TO("y", y, definition(want), close);
        EXPECT_CLOSE_TO("h", h, units, close);
        EXPECT_CLOSE_TO("dgate, dup", dboth, torch::cat({dgate, dup}, 1), close);
        EXPECT_CLOSE_TO("dx", dx, dgate.matmul(want.gate) + dup.matmul(want.up), close);
      }
}

TEST_F(GatedMlpOnGpu, HasKernelsForWidthsOf64And128) {
  if (!is_hopper()) GTEST_SKIP() << "the kernel is for Hopper";
  EXPECT_TRUE(has_kernel(128, 512));
  EXPECT_TRUE(has_kernel(64, 64));
  EXPECT_FALSE(has_kernel(128, 72));
  EXPECT_FALSE(has_kernel(96, 64));
  EXPECT_FALSE(has_kernel(256, 512));
}

}  // namespace
}  // namespace lrnn
