#pragma once
#include "ops/problem.h"
#include "ops/unit_conv/unit_conv.h"

namespace lrnn::ops {

// q, k and v of one head: two units of `group` channels, and 12 channels.
struct UnitConvCase {
  int64_t B = 2, T = 67, group = 16, W = 4;
  torch::Dtype dtype = torch::kFloat64;
};

inline Problem unit_conv_problem(const UnitConvCase& c, const Draw& draw) {
  const int64_t D = 2 * c.group + 12;
  const Tensor x = draw.io(draw.normal({c.B, c.T, D})), weight = draw.io(draw.normal({D, 1, c.W}));
  const auto by = [group = c.group](auto f) {
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

inline std::string shape_of(const UnitConvCase& c) {
  return shape_text({c.B, c.T, c.group, c.W}, c.dtype);
}
inline double flops_per_token(const UnitConvCase& c) {
  return 2.0 * double((2 * c.group + 12) * c.W);
}

inline Cases<UnitConvCase> unit_conv_cases() {
  Cases<UnitConvCase> out;
  out.typical = {{}};
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const int64_t group : {16, 32, 128})
      out.kernels.push_back({.T = 11, .group = group, .dtype = dtype});
  out.timed_on_gpu = {{.B = 256, .T = 64, .group = 128, .dtype = torch::kBFloat16}};
  return out;
}

}  // namespace lrnn::ops
