#pragma once
#include "ops/heads_case.h"
#include "ops/titans/titans.h"

namespace lrnn::ops {

using TitansCase = HeadsCaseOf<9>;

// Steps beyond 1 reflect; memory and momentum last for a few tokens, so that no product of the
// transitions grows.
inline Titans make_titans(const TitansCase& c, const Draw& draw) {
  const std::vector<int64_t> keys = {c.B, c.T, c.H, c.K}, gates = {c.B, c.T, c.H};
  Titans in;
  in.scale = 0.7;
  if (c.q) in.q = draw.io(draw.normal(keys));
  in.k = draw.io(draw.unit(keys)), in.v = draw.io(draw.normal({c.B, c.T, c.H, c.V}));
  in.theta = draw.real(1.2 * draw.uniform(gates)), in.eta = draw.real(0.9 * draw.uniform(gates));
  in.alpha = draw.real(0.05 + 0.3 * draw.uniform(gates));
  in.cu_seqlens = bounds(c.lengths);
  if (c.state) {
    const std::vector<int64_t> state = {sequences(c.B, c.lengths), c.H, c.K, c.V};
    in.state = draw.real(draw.normal(state)), in.momentum = draw.real(draw.normal(state));
  }
  return in;
}

}  // namespace lrnn::ops
