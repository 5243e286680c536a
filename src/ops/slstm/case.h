#pragma once
#include "ops/problem.h"
#include "ops/slstm/slstm.h"

namespace lrnn::ops {

struct SlstmCase {
  int64_t B = 2, T = 5, H = 2, D = 3;
  bool bias = true, state = true;
  std::vector<int64_t> lengths = {};
};

inline const std::vector<SlstmCase> kSlstmCases = {
    {.B = 1, .T = 1, .H = 1, .D = 1},
    {.B = 3, .T = 7, .H = 2, .D = 5, .bias = false, .state = false},
    {.B = 2, .T = 33, .H = 1, .D = 16},
    {.B = 1, .T = 70, .H = 3, .D = 32, .state = false},
    {.B = 1, .T = 40, .H = 1, .D = 37},
    {.B = 1, .T = 36, .H = 2, .D = 8, .lengths = {5, 0, 30, 1}},
    {.B = 40, .T = 3, .H = 1, .D = 4},
};

inline Slstm make_slstm(const SlstmCase& c, torch::Dtype dtype = torch::kFloat64) {
  torch::manual_seed(1);
  Slstm in;
  // Either of i and log sigmoid(f) + m is the larger often enough.
  in.wx = (2 * normal({c.B, c.T, c.H, 4, c.D})).to(dtype);
  in.R = (normal({c.H, c.D, 4, c.D}) / std::sqrt(double(c.D))).to(dtype);
  if (c.bias) in.bias = normal({c.H, 4, c.D}).to(dtype);
  if (c.state) {
    Tensor state = normal({sequences(c.B, c.lengths), 4, c.H, c.D});
    state.select(1, 2).abs_();  // n counts
    in.state = state.to(wide(dtype));
  }
  in.cu_seqlens = bounds(c.lengths);
  return in;
}

inline std::vector<SlstmCase> typical_slstms() { return {{.B = 2, .T = 67, .H = 2, .D = 24}}; }

}  // namespace lrnn::ops
