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

}  // namespace lrnn::ops
