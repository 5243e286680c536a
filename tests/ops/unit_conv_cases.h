#pragma once
#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/short_conv/short_conv.h"
#include "tests/close.h"

// unit_conv against its definition, on any device.
namespace lrnn {

struct UnitConvCase {
  int64_t B, T, W;
  std::vector<int64_t> sizes;
  int64_t units, group;
  bool state = false, wide = false;  // wide: x is a piece of something wider
  std::vector<bool> used = {};       // which pieces have a gradient; empty: all
};

// Kernels exist for up to four weights and groups of 4 to 128 channels; the others take steps.
inline const std::vector<UnitConvCase> kUnitConvCases = {
    {2, 5, 4, {32, 32, 32}, 64, 32},
    {3, 70, 4, {128, 128, 128}, 256, 32, false, true},
    {2, 33, 4, {128, 256, 256}, 384, 128, true},
    {1, 1, 4, {4, 4, 8}, 8, 4, true},
    {5, 40, 3, {16, 32, 20}, 48, 16, true, true},
    {7, 19, 2, {64, 64, 64}, 128, 64, false, false, {false, true, true}},
    {2, 9, 4, {32, 32, 32}, 64, 32, false, true, {true, false, false}},
    {2, 3, 1, {8, 8, 4}, 16, 8},
    {1, 300, 4, {32, 32, 36}, 64, 16},
    {2, 17, 4, {12, 12, 12}, 24, 12},     // not a power of two
    {2, 17, 4, {256, 256, 4}, 512, 256},  // more than a warp has
    {2, 17, 6, {32, 32, 32}, 64, 32},     // too many weights
    {2, 17, 4, {5, 5, 7}, 10, 5},
    {2, 8, 4, {16, 16}, 0, 16},
    {2, 8, 4, {4, 4, 4, 4}, 8, 4},  // more pieces than q, k and v
    {2, 0, 4, {8, 8, 8}, 16, 8},
};

// Outputs and the gradients of a random linear function of them.
inline std::vector<torch::Tensor> run_unit_conv(const UnitConvCase& c, torch::Dtype dtype,
                                                torch::Device device, bool definition) {
  using torch::Tensor;
  torch::manual_seed(7);
  int64_t D = 0;
  for (const int64_t size : c.sizes) D += size;
  const auto draw = [&](std::vector<int64_t> sizes) {
    return torch::randn(sizes, torch::kFloat64).to(torch::kBFloat16).to(dtype).to(device);
  };
  const Tensor all = draw({c.B, c.T, D + (c.wide ? 8 : 0)}).requires_grad_(),
               weight = draw({D, 1, c.W}).requires_grad_(), x = all.narrow(2, c.wide ? 4 : 0, D),
               state = draw({c.B, D, c.W});
  const double eps = 1e-3;  // large enough to be noticed where it is missing
  const ops::UnitConv in{.x = x,
                         .weight = weight,
                         .state = c.state ? state : Tensor(),
                         .sizes = c.sizes,
                         .units = c.units,
                         .group = c.group,
                         .eps = eps};
  const auto out = definition ? ops::unit_conv_definition(in) : ops::unit_conv(in);
  std::vector<Tensor> y = out.y;
  const Tensor next = out.state;
  Tensor loss = (next * draw({c.B, D, c.W})).sum();
  for (size_t i = 0; i < y.size(); ++i) {
    const Tensor by = draw({c.B, c.T, c.sizes[i]});
    if (c.used.empty() || c.used[i]) loss = loss + (y[i] * by).sum();
  }
  loss.backward();
  y.insert(y.end(), {next, all.grad(), weight.grad()});
  return y;
}

inline void expect_unit_conv(const std::vector<UnitConvCase>& cases, torch::Device device) {
  for (const auto& c : cases) {
    const auto want = run_unit_conv(c, torch::kFloat64, torch::kCPU, true);
    for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16}) {
      SCOPED_TRACE(testing::Message() << c.B << " " << c.T << " " << c.W << " " << c.sizes << " "
                                      << c.units << " by " << c.group << " " << dtype);
      const auto got = run_unit_conv(c, dtype, device, false),
                 again = run_unit_conv(c, dtype, device, false);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_CLOSE_TO(cat("tensor ", i), got[i], want[i], tolerance(dtype));
        EXPECT_TRUE(torch::equal(got[i], again[i]));
      }
    }
  }
}

}  // namespace lrnn
