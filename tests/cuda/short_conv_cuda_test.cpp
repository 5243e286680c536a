#include "ops/short_conv/short_conv.h"
#include "tests/close.h"
#include "tests/cuda/device.h"

namespace lrnn {
namespace {

using torch::Tensor;
struct ShortConvOnGpu : OnGpu {};

struct ConvCase {
  int64_t B, T, D, W;
  bool bias, state, silu;
  std::vector<int64_t> lengths = {};
};

const std::vector<ConvCase> kConvCases = {
    {1, 1, 1, 1, false, false, false},
    {2, 5, 3, 4, true, true, true},
    {3, 300, 130, 4, false, true, true},
    {2, 2, 7, 4, true, true, true},
    {1, 40, 33, 3, true, true, false, {5, 0, 1, 34}},
    {1, 600, 65, 2, false, false, true, {599, 1}},
    {2, 0, 4, 3, true, true, true},
    // Channels in fours and no state to differentiate: the window in registers both ways.
    {2, 37, 132, 4, false, false, true},
    {3, 70, 128, 3, true, false, false},
    {5, 6, 8, 1, true, false, true},
    {130, 67, 36, 4, true, false, true},
};

// Outputs and the gradients of a random linear function of them.
std::vector<Tensor> run(const ConvCase& c, torch::Dtype dtype, bool gpu, bool definition) {
  torch::manual_seed(5);
  const int64_t S = c.lengths.empty() ? c.B : int64_t(c.lengths.size());
  const auto draw = [&](std::vector<int64_t> sizes) {
    Tensor x = torch::randn(sizes, torch::kFloat64).to(torch::kBFloat16).to(dtype);
    return (gpu ? x.to(torch::kCUDA) : x).requires_grad_();
  };
  ops::ShortConv in;
  in.x = draw({c.B, c.T, c.D}), in.weight = draw({c.D, 1, c.W}), in.silu = c.silu;
  if (c.bias) in.bias = draw({c.D});
  if (c.state) in.state = draw({S, c.D, c.W});
  if (!c.lengths.empty()) {
    std::vector<int64_t> ends = {0};
    for (const int64_t n : c.lengths) ends.push_back(ends.back() + n);
    in.cu_seqlens = torch::tensor(ends, torch::kInt64);
    if (gpu) in.cu_seqlens = in.cu_seqlens.to(torch::kCUDA);
  }
  const auto out = definition ? ops::short_conv_definition(in) : ops::short_conv(in);
  const Tensor wy = draw({c.B, c.T, c.D}).detach(), ws = draw({S, c.D, c.W}).detach();
  ((out.y * wy).sum() + (out.state * ws).sum()).backward();
  std::vector<Tensor> all = {out.y, out.state, in.x.grad(), in.weight.grad()};
  if (c.bias) all.push_back(in.bias.grad());
  if (c.state) all.push_back(in.state.grad());
  return all;
}

TEST_F(ShortConvOnGpu, EqualsTheDefinition) {
  for (const ConvCase& c : kConvCases) {
    const auto want = run(c, torch::kFloat64, false, true);
    for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16}) {
      SCOPED_TRACE(testing::Message() << c.B << " " << c.T << " " << c.D << " " << c.W << dtype);
      const auto got = run(c, dtype, true, false), again = run(c, dtype, true, false);
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_CLOSE_TO(std::to_string(i), got[i], want[i], tolerance(dtype));
        EXPECT_TRUE(torch::equal(got[i], again[i]));
      }
    }
  }
}

}  // namespace
}  // namespace lrnn
