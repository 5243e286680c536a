#pragma once
#include "ops/problem.h"
#include "ops/rwkv7/rwkv7.h"

namespace lrnn::ops {

struct Rwkv7Case {
  int64_t B = 2, T = 5, H = 2, K = 3, V = 4;
  bool state = true, r = true;
  std::vector<int64_t> lengths = {};
};

inline Rwkv7 make_rwkv7(const Rwkv7Case& c, torch::Dtype dtype) {
  torch::manual_seed(1);
  const std::vector<int64_t> keys = {c.B, c.T, c.H, c.K};
  Rwkv7 in;
  in.scale = 0.7;
  if (c.r) in.r = normal(keys).to(dtype);
  in.k = normal(keys).to(dtype), in.v = normal({c.B, c.T, c.H, c.V}).to(dtype);
  in.log_w = (-0.9 * uniform(keys)).to(wide(dtype));
  in.kk = unit(keys).to(dtype), in.a = (2 * uniform(keys)).to(dtype);
  in.cu_seqlens = bounds(c.lengths);
  if (c.state) in.state = normal({sequences(c.B, c.lengths), c.H, c.K, c.V}).to(wide(dtype));
  return in;
}

inline std::vector<Rwkv7Case> typical_rwkv7s() {
  return {{.B = 2, .T = 67, .H = 3, .K = 16, .V = 24},
          {.B = 1, .T = 130, .H = 2, .K = 64, .V = 64}};
}

}  // namespace lrnn::ops
