#pragma once
#include "ops/diagonal/case.h"
#include "ops/gated_linear_attention/gated_linear_attention.h"

namespace lrnn::ops {

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

}  // namespace lrnn::ops
