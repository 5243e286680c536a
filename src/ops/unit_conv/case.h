#pragma once
#include "ops/short_conv/case.h"
#include "ops/unit_conv/unit_conv.h"

namespace lrnn::ops {

// q, k and v of one head: two units of D channels, and 12 channels.
inline Problem unit_conv_problem(const ShortConvCase& c, const Draw& draw) {
  const int64_t channels = 2 * c.D + 12;
  const Tensor x = draw.io(draw.normal({c.B, c.T, channels})),
               weight = draw.io(draw.normal({channels, 1, c.W}));
  const auto by = [group = c.D](auto f) {
    return [group, f](const Tensors& in) -> Tensors {
      const UnitConvResult out = f({.x = in.at("x"),
                                    .weight = in.at("weight"),
                                    .state = {},
                                    .sizes = {group, group, 12},
                                    .units = 2 * group,
                                    .group = group,
                                    .eps = 1e-3});
      return {
          {"out q", out.y[0]}, {"out k", out.y[1]}, {"out v", out.y[2]}, {"out state", out.state}};
    };
  };
  return {{{"x", x}, {"weight", weight}}, by(unit_conv), by(unit_conv_definition), "out q"};
}

inline Cases<ShortConvCase> unit_conv_cases() {
  Cases<ShortConvCase> out;
  out.typical = {{.D = 16}};
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const int64_t D : {16, 32, 128}) out.kernels.push_back({.T = 11, .D = D, .dtype = dtype});
  out.timed_on_gpu = {{.B = 256, .T = 64, .D = 128, .dtype = torch::kBFloat16}};
  return out;
}

}  // namespace lrnn::ops
