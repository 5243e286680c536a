#pragma once
#include "ops/gated_linear_attention/gated_linear_attention.h"
#include "ops/problem.h"

namespace lrnn::ops {

struct GlaCase {
  int64_t B = 2, T = 5, H = 2, K = 3, V = 4;
  bool negative = false, state = true, q = true;
  std::vector<int64_t> lengths = {};
};

// Down to transitions of 0.4, or -0.2: a state is not forgotten at once.
inline GatedLinearAttention make_gla(const GlaCase& c, torch::Dtype dtype) {
  torch::manual_seed(1);
  GatedLinearAttention in;
  in.negative = c.negative;
  if (c.q) in.q = normal({c.B, c.T, c.H, c.K}).to(dtype);
  in.k = normal({c.B, c.T, c.H, c.K}).to(dtype);
  in.v = normal({c.B, c.T, c.H, c.V}).to(dtype);
  in.log_gate = (-0.9 * uniform({c.B, c.T, c.H, c.K})).to(wide(dtype));
  in.cu_seqlens = bounds(c.lengths);
  if (c.state) in.state = normal({sequences(c.B, c.lengths), c.H, c.K, c.V}).to(wide(dtype));
  return in;
}

inline std::vector<GlaCase> typical_glas() {
  return {{.B = 2, .T = 67, .H = 3, .K = 16, .V = 24, .negative = true},
          {.B = 1, .T = 130, .H = 2, .K = 64, .V = 64}};
}

}  // namespace lrnn::ops
