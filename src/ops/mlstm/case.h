#pragma once
#include "ops/mlstm/mlstm.h"
#include "ops/problem.h"

namespace lrnn::ops {

struct MlstmCase {
  int64_t B = 2, T = 5, H = 2, K = 3, V = 3;
  bool state = true;
  torch::Dtype dtype = torch::kFloat64;
  std::vector<int64_t> lengths = {};
  bool alike = false;  // keys and queries look the same way: n . q, by which h is divided, is not 0
  bool wide = false;   // gates in float32 beside bfloat16, as a model gives them
};

inline const std::vector<MlstmCase> kMlstmCases = {
    {.B = 3, .T = 1, .H = 1, .K = 1, .V = 1},
    {.B = 3, .T = 7, .H = 2, .K = 5, .V = 3, .state = false},
    {.B = 1, .T = 64, .H = 2, .K = 16, .V = 20},
    {.B = 2, .T = 65, .H = 3, .K = 33, .V = 16},
    {.B = 1, .T = 200, .H = 2, .K = 8, .V = 32, .state = false},
    {.B = 1, .T = 170, .H = 1, .K = 64, .V = 64},
    {.B = 1, .T = 176, .H = 2, .K = 8, .V = 9, .lengths = {5, 0, 130, 1, 40}},
};

inline Mlstm make_mlstm(const MlstmCase& c, const Draw& draw = torch::kFloat64) {
  const auto key = [&] {
    const Tensor x = draw.normal({c.B, c.T, c.H, c.K});
    return draw.io(c.alike ? 1 + 0.3 * x : x);
  };
  Mlstm in;
  in.q = key(), in.k = key();
  in.v = draw.io(draw.normal({c.B, c.T, c.H, c.V}));
  const auto gate = [&](const Tensor& x) { return c.wide ? draw.real(x) : draw.io(x); };
  in.i = gate(2 * draw.normal({c.B, c.T, c.H}));
  in.f = gate(2 + 2 * draw.normal({c.B, c.T, c.H}));
  if (c.state) {
    const int64_t S = sequences(c.B, c.lengths);
    in.state.C = draw.real(draw.normal({S, c.H, c.K, c.V}));
    in.state.n = draw.real(c.alike ? draw.uniform({S, c.H, c.K}) : draw.normal({S, c.H, c.K}));
    in.state.m = draw.real(draw.normal({S, c.H}));
  }
  in.cu_seqlens = bounds(c.lengths);
  return in;
}

inline std::string shape_of(const MlstmCase& c) {
  if (c.K == c.V) return shape_text({c.B, c.T, c.H, c.K}, c.dtype);
  return shape_text({c.B, c.T, c.H, c.K, c.V}, c.dtype);
}
inline double flops_per_token(const MlstmCase& c) { return 5.0 * double(c.H * c.K * c.V); }

inline Cases<MlstmCase> mlstm_cases() {
  const auto bf16 = torch::kBFloat16, fp32 = torch::kFloat32;
  Cases<MlstmCase> out;
  out.typical = {{.B = 2, .T = 67, .H = 2, .K = 16, .V = 24, .alike = true},
                 {.B = 1, .T = 130, .H = 2, .K = 64, .V = 64, .alike = true}};
  for (const auto dtype : {torch::kFloat64, fp32, bf16}) {
    out.kernels.push_back(
        {.B = 1, .T = 33, .H = 2, .K = 20, .V = 18, .dtype = dtype, .alike = true});
    out.kernels.push_back(
        {.B = 1, .T = 70, .H = 1, .K = 64, .V = 64, .dtype = dtype, .alike = true});
  }
  // Depths of 64, 128, 256, and of blocks that share them.
  for (const auto& [T, K, V, packed] :
       {std::tuple<int64_t, int64_t, int64_t, bool>{300, 64, 48, false},
        {70, 128, 192, false},
        {130, 256, 96, true},
        {70, 272, 528, false}}) {
    out.kernels.push_back({.B = 1, .T = T, .H = 2, .K = K, .V = V, .dtype = bf16, .alike = true});
    if (packed) out.kernels.back().lengths = {0, 65, 1, 64};
  }
  // With the heads of the published models of width 128.
  out.timed = {
      {.B = 8, .T = 256, .H = 4, .K = 64, .V = 64, .state = false, .dtype = fp32, .alike = true}};
  const auto on_gpu = [&](MlstmCase c) {
    c.state = false, c.alike = c.wide = true, out.timed_on_gpu.push_back(c);
  };
  for (const auto& [B, T, D, dtype] : {std::tuple{8, 1024, 64, bf16},
                                       {256, 64, 32, bf16},
                                       {256, 40, 64, bf16},
                                       {256, 40, 64, fp32}})
    on_gpu({.B = B, .T = T, .H = 4, .K = D, .V = D, .dtype = dtype});
  for (const auto& [B, H, K, V] : {std::tuple{8, 8, 128, 128}, {4, 4, 256, 512}})
    on_gpu({.B = B, .T = 2048, .H = H, .K = K, .V = V, .dtype = bf16});
  return out;
}

}  // namespace lrnn::ops
