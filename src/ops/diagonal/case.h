#pragma once
#include "ops/gated_linear_attention/gated_linear_attention.h"
#include "ops/problem.h"
#include "ops/rwkv7/rwkv7.h"

// What gated linear attention and RWKV-7 are asked alike.
namespace lrnn::ops {

struct HeadsCase {
  int64_t B = 2, T = 5, H = 2, K = 3, V = 4;
  bool state = true, q = true, negative = false;  // negative: not for RWKV-7
  torch::Dtype dtype = torch::kFloat64;
  std::vector<int64_t> lengths = {};  // packed sequences, B = 1 and T their sum
};

inline std::string shape_of(const HeadsCase& c) {
  return shape_text({c.B, c.T, c.H, c.K, c.V}, c.dtype);
}
inline double flops_per_token(const HeadsCase& c) { return 5.0 * double(c.H * c.K * c.V); }

// Keys and values that do not fill a vector, lengths around the chunk, every option off once.
inline std::vector<HeadsCase> odd_heads() {
  return {{.B = 1, .T = 1, .H = 1, .K = 1, .V = 1},
          {.B = 2, .T = 31, .H = 2, .K = 3, .V = 17},
          {.B = 1, .T = 32, .H = 3, .K = 16, .V = 16, .state = false, .negative = true},
          {.B = 1, .T = 33, .H = 1, .K = 20, .V = 5, .negative = true},
          {.B = 1, .T = 97, .H = 2, .K = 33, .V = 64, .negative = true},
          {.B = 1, .T = 64, .H = 1, .K = 64, .V = 40, .q = false},
          {.B = 1, .T = 23, .H = 2, .K = 4, .V = 20, .negative = true, .lengths = {5, 0, 17, 1}},
          {.B = 1, .T = 130, .H = 1, .K = 4, .V = 6, .lengths = {10, 100, 20}}};
}

inline Cases<HeadsCase> heads_cases() {
  const auto bf16 = torch::kBFloat16, fp32 = torch::kFloat32;
  Cases<HeadsCase> out;
  out.typical = {{.B = 2, .T = 67, .H = 3, .K = 16, .V = 24, .negative = true},
                 {.B = 1, .T = 130, .H = 2, .K = 64, .V = 64}};
  for (const auto dtype : {torch::kFloat64, fp32, bf16})
    for (const auto& [T, K, V] :
         {std::tuple{20, 10, 70}, {20, 20, 70}, {70, 64, 64}, {70, 90, 70}, {20, 130, 70}})
      out.kernels.push_back({.B = 1, .T = T, .H = 1, .K = K, .V = V, .dtype = dtype});
  out.timed = {{.B = 8, .T = 512, .H = 4, .K = 32, .V = 32, .dtype = fp32},
               {.B = 2, .T = 1024, .H = 8, .K = 64, .V = 64, .dtype = fp32}};
  for (const auto& [B, T, H, K] :
       {std::tuple{8, 2048, 16, 64}, {8, 2048, 8, 128}, {256, 64, 4, 32}})
    out.timed_on_gpu.push_back(
        {.B = B, .T = T, .H = H, .K = K, .V = K, .state = false, .dtype = bf16});
  return out;
}

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
