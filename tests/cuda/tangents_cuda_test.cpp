#include "tests/cuda/device.h"
#include "tests/ops/tangent_cases.h"

// Forward-mode derivatives on the GPU, where more ops are kernels of ours than on the CPU: those of
// the CPU in float64, which tests/ops holds against differences.
namespace lrnn {
namespace {

struct TangentsOnGpu : OnGpu {};

TensorVector moved_to_gpu(TensorVector x, torch::Dtype dtype) {
  for (auto& t : x)
    if (t.defined()) t = t.to(torch::kCUDA, dtype);
  return x;
}

void expect_cpu_tangents(const TangentCase& c, torch::Dtype dtype, double limit) {
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    TensorVector along(c.inputs.size());
    along[i] = torch::randn_like(c.inputs[i]);
    const TensorVector want = tangents_of(c.f, c.inputs, along),
                       got = tangents_of(c.f, moved_to_gpu(c.inputs, dtype),
                                         moved_to_gpu(along, dtype));
    ASSERT_EQ(got.size(), want.size()) << c.name;
    for (size_t j = 0; j < got.size(); ++j)
      EXPECT_CLOSE_TO(cat(c.name, ": output ", j, " along input ", i), got[j], want[j], limit);
  }
}

TEST_F(TangentsOnGpu, AreThoseOfTheCpu) {
  for (const auto& c : tangent_cases()) expect_cpu_tangents(c, torch::kFloat32, 1e-4);
}

// Enough rows in bfloat16 for the MLP that is one kernel.
TEST_F(TangentsOnGpu, OfTheMlpInOneKernel) {
  torch::manual_seed(6);
  const auto random = [](at::IntArrayRef shape) {
    return (torch::randn(shape) / 8).to(torch::kBFloat16).to(torch::kFloat64);
  };
  expect_cpu_tangents(
      {"gated_mlp",
       [](auto& x) { return TensorVector{ops::gated_mlp(x[0], x[1], x[2], x[3])}; },
       {random({4096, 64}), random({128, 64}), random({128, 64}), random({64, 128})}},
      torch::kBFloat16, 3e-2);
}

// Weights that lie side by side are one matrix on a GPU; the gradient's own graph needs each.
TEST_F(TangentsOnGpu, SecondDerivativeOfLinearsSideBySide) {
  torch::manual_seed(7);
  const auto random = [](at::IntArrayRef shape) { return torch::randn(shape, torch::kFloat64); };
  const TensorVector inputs = {random({6, 16}), random({24, 16})};
  const auto second = [&](auto&& products, torch::Device device) {
    TensorVector leaves;
    for (const auto& x : inputs) leaves.push_back(x.to(device).requires_grad_());
    const auto y = products(leaves[0], leaves[1].narrow(0, 0, 8), leaves[1].narrow(0, 8, 16));
    const auto first = torch::autograd::grad({y[0].square().sum() + y[1].pow(3).sum()}, leaves, {},
                                             true, /*create_graph=*/true);
    return torch::autograd::grad({first[0].square().sum() + first[1].square().sum()}, leaves);
  };
  using torch::Tensor;
  const auto ours = second(
      [](const Tensor& x, const Tensor& a, const Tensor& b) {
        return ops::linears(x, {a, b});
      },
      torch::kCUDA);
  const auto want = second(
      [](const Tensor& x, const Tensor& a, const Tensor& b) {
        return TensorVector{torch::linear(x, a), torch::linear(x, b)};
      },
      torch::kCPU);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_CLOSE("second derivative", ours[i], want[i]);
}

}  // namespace
}  // namespace lrnn
