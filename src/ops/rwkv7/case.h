#pragma once
#include "ops/diagonal/case.h"
#include "ops/rwkv7/rwkv7.h"

namespace lrnn::ops {

// Rates of up to 2 reflect.
inline Rwkv7 make_rwkv7(const HeadsCase& c, const Draw& draw) {
  const std::vector<int64_t> keys = {c.B, c.T, c.H, c.K};
  Rwkv7 in;
  in.scale = 0.7;
  if (c.q) in.r = draw.io(draw.normal(keys));
  in.k = draw.io(draw.normal(keys)), in.v = draw.io(draw.normal({c.B, c.T, c.H, c.V}));
  in.log_w = draw.real(-0.9 * draw.uniform(keys));
  in.kk = draw.io(draw.unit(keys)), in.a = draw.io(2 * draw.uniform(keys));
  in.cu_seqlens = bounds(c.lengths);
  if (c.state) in.state = draw.real(draw.normal({sequences(c.B, c.lengths), c.H, c.K, c.V}));
  return in;
}

}  // namespace lrnn::ops
