#pragma once
#include "ops/problem.h"
#include "ops/short_conv/short_conv.h"

namespace lrnn::ops {

struct ShortConvCase {
  int64_t B = 2, T = 67, D = 40, W = 4;
  torch::Dtype dtype = torch::kFloat64;
};

inline ShortConv make_short_conv(const ShortConvCase& c, const Draw& draw) {
  ShortConv in;
  in.x = draw.io(draw.normal({c.B, c.T, c.D}));
  in.weight = draw.io(draw.normal({c.D, 1, c.W})), in.bias = draw.io(draw.normal({c.D}));
  in.state = draw.io(draw.normal({c.B, c.D, c.W}));
  return in;
}

inline std::string shape_of(const ShortConvCase& c) {
  return shape_text({c.B, c.T, c.D, c.W}, c.dtype);
}
inline double flops_per_token(const ShortConvCase& c) { return 2.0 * double(c.D * c.W); }

inline Cases<ShortConvCase> short_conv_cases() {
  Cases<ShortConvCase> out;
  out.typical = {{}, {.B = 1, .T = 3}};
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const auto& [W, D] : {std::tuple{4, 131}, {9, 131}, {4, 128}})  // 9: past the registers
      out.kernels.push_back({.B = 2, .T = 11, .D = D, .W = W, .dtype = dtype});
  out.timed = {{.B = 1, .T = 5248, .D = 128, .dtype = torch::kFloat32}};  // a batch of parity
  out.timed_on_gpu = {{.B = 8, .T = 4096, .D = 2048, .dtype = torch::kBFloat16},
                      {.B = 256, .T = 64, .D = 384, .dtype = torch::kFloat32}};
  return out;
}

// --------------------------------------------------------------------------------- unit_conv

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
