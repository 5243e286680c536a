#pragma once
#include "ops/problem.h"
#include "ops/short_conv/short_conv.h"

namespace lrnn::ops {

struct ShortConvCase {
  int64_t B = 2, T = 67, D = 40, W = 4;
};

inline ShortConv make_short_conv(const ShortConvCase& c, torch::Dtype dtype) {
  torch::manual_seed(1);
  ShortConv in;
  in.x = normal({c.B, c.T, c.D}).to(dtype);
  in.weight = normal({c.D, 1, c.W}).to(dtype), in.bias = normal({c.D}).to(dtype);
  in.state = normal({c.B, c.D, c.W}).to(dtype);
  return in;
}

inline std::vector<ShortConvCase> typical_short_convs() { return {{}, {.B = 1, .T = 3}}; }

}  // namespace lrnn::ops
