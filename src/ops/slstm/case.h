#pragma once
#include "ops/problem.h"
#include "ops/slstm/slstm.h"

namespace lrnn::ops {

struct SlstmCase {
  int64_t B = 2, T = 5, H = 2, D = 3;
  bool bias = true, state = true;
  torch::Dtype dtype = torch::kFloat64;
  std::vector<int64_t> lengths = {};
  bool wide = false;  // R and bias in float32 beside bfloat16, as a model gives them
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

inline Slstm make_slstm(const SlstmCase& c, const Draw& draw = torch::kFloat64) {
  Slstm in;
  // Either of i and log sigmoid(f) + m is the larger often enough.
  in.wx = draw.io(2 * draw.normal({c.B, c.T, c.H, 4, c.D}));
  const auto weight = [&](const Tensor& x) { return c.wide ? draw.real(x) : draw.io(x); };
  in.R = weight(draw.normal({c.H, c.D, 4, c.D}) / std::sqrt(double(c.D)));
  if (c.bias) in.bias = weight(draw.normal({c.H, 4, c.D}));
  if (c.state) {
    Tensor state = draw.normal({sequences(c.B, c.lengths), 4, c.H, c.D});
    state.select(1, 2).abs_();  // n counts
    in.state = draw.real(state);
  }
  in.cu_seqlens = bounds(c.lengths);
  return in;
}

inline std::string shape_of(const SlstmCase& c) {
  return shape_text({c.B, c.T, c.H, c.D}, c.dtype);
}
inline double flops_per_token(const SlstmCase& c) { return 8.0 * double(c.H * c.D * c.D); }

inline Cases<SlstmCase> slstm_cases() {
  Cases<SlstmCase> out;
  out.typical = {{.B = 2, .T = 67, .H = 2, .D = 24}};
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16}) {
    out.kernels.push_back({.B = 1, .T = 6, .H = 1, .D = 37, .dtype = dtype});
    out.kernels.push_back({.B = 133, .T = 2, .H = 4, .D = 5, .dtype = dtype});
  }
  out.timed = {{.B = 8, .T = 256, .H = 4, .D = 32, .state = false, .dtype = torch::kFloat32}};
  for (const auto& [B, T, D] : {std::tuple{8, 1024, 64}, {256, 64, 32}})
    out.timed_on_gpu.push_back(
        {.B = B, .T = T, .H = 4, .D = D, .state = false, .dtype = torch::kBFloat16, .wide = true});
  return out;
}

}  // namespace lrnn::ops
