#pragma once
#include "ops/gated_linear_attention/gated_linear_attention.h"
#include "ops/heads_case.h"
#include "ops/rwkv7/rwkv7.h"

// What gated linear attention and RWKV-7 are asked alike.
namespace lrnn::ops {

using HeadsCase = HeadsCaseOf<5>;

// Down to transitions of 0.4, or -0.2: a state is not forgotten at once.
inline GatedLinearAttention make_gla(const HeadsCase& c, const Draw& draw) {
  GatedLinearAttention in;
  in.negative = c.negative;
  if (c.q) in.q = draw.io(draw.normal({c.B, c.T, c.H, c.K}));
  in.k = draw.io(draw.normal({c.B, c.T, c.H, c.K}));
  in.v = draw.io(draw.normal({c.B, c.T, c.H, c.V}));
  in.log_gate = draw.real(-0.9 * draw.uniform({c.B, c.T, c.H, c.K}));
  in.cu_seqlens = bounds(c.lengths);
  if (c.state) in.state = draw.real(draw.normal({sequences(c.B, c.lengths), c.H, c.K, c.V}));
  return in;
}

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
