#pragma once
#include "ops/problem.h"
#include "ops/titans/titans.h"

namespace lrnn::ops {

struct TitansCase {
  int64_t B = 2, T = 5, H = 2, K = 3, V = 4;
  bool state = true, q = true;
  torch::Dtype dtype = torch::kFloat64;
  std::vector<int64_t> lengths = {};  // packed sequences, B = 1 and T their sum
};

inline std::string shape_of(const TitansCase& c) {
  return shape_text({c.B, c.T, c.H, c.K, c.V}, c.dtype);
}
inline double flops_per_token(const TitansCase& c) { return 9.0 * double(c.H * c.K * c.V); }

// Keys and values that do not fill a vector, lengths around the chunk, every option off once.
inline std::vector<TitansCase> odd_titans() {
  return {{.B = 1, .T = 1, .H = 1, .K = 1, .V = 1},
          {.B = 2, .T = 31, .H = 2, .K = 3, .V = 17},
          {.B = 1, .T = 32, .H = 3, .K = 16, .V = 16, .state = false},
          {.B = 1, .T = 33, .H = 1, .K = 20, .V = 5},
          {.B = 1, .T = 97, .H = 2, .K = 33, .V = 64},
          {.B = 1, .T = 64, .H = 1, .K = 64, .V = 40, .q = false},
          {.B = 1, .T = 23, .H = 2, .K = 4, .V = 20, .lengths = {5, 0, 17, 1}},
          {.B = 1, .T = 130, .H = 1, .K = 4, .V = 6, .lengths = {10, 100, 20}}};
}

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

inline Cases<TitansCase> titans_cases() {
  const auto bf16 = torch::kBFloat16, fp32 = torch::kFloat32;
  Cases<TitansCase> out;
  out.typical = {{.B = 2, .T = 67, .H = 3, .K = 16, .V = 24},
                 {.B = 1, .T = 130, .H = 2, .K = 64, .V = 64}};
  for (const auto dtype : {torch::kFloat64, fp32, bf16})
    for (const auto& [T, K, V] :
         {std::tuple{20, 10, 70}, {70, 64, 64}, {20, 90, 70}, {20, 130, 70}})
      out.kernels.push_back({.B = 1, .T = T, .H = 1, .K = K, .V = V, .dtype = dtype});
  out.timed = {{.B = 8, .T = 512, .H = 4, .K = 32, .V = 32, .dtype = fp32},
               {.B = 2, .T = 1024, .H = 8, .K = 64, .V = 64, .dtype = fp32}};
  for (const auto& [B, T, H, K] :
       {std::tuple{8, 2048, 16, 64}, {8, 2048, 8, 128}, {256, 64, 4, 32}})
    out.timed_on_gpu.push_back(
        {.B = B, .T = T, .H = H, .K = K, .V = K, .state = false, .dtype = bf16});
  return out;
}

}  // namespace lrnn::ops
