#pragma once
#include "ops/problem.h"
#include "ops/rwkv7/rwkv7.h"

namespace lrnn::ops {

struct Rwkv7Case {
  int64_t B = 2, T = 5, H = 2, K = 3, V = 4;
  bool state = true, r = true;
  torch::Dtype dtype = torch::kFloat64;
  std::vector<int64_t> lengths = {};
};

inline Rwkv7 make_rwkv7(const Rwkv7Case& c, const Draw& draw) {
  const std::vector<int64_t> keys = {c.B, c.T, c.H, c.K};
  Rwkv7 in;
  in.scale = 0.7;
  if (c.r) in.r = draw.io(draw.normal(keys));
  in.k = draw.io(draw.normal(keys)), in.v = draw.io(draw.normal({c.B, c.T, c.H, c.V}));
  in.log_w = draw.real(-0.9 * draw.uniform(keys));
  in.kk = draw.io(draw.unit(keys)), in.a = draw.io(2 * draw.uniform(keys));
  in.cu_seqlens = bounds(c.lengths);
  if (c.state) in.state = draw.real(draw.normal({sequences(c.B, c.lengths), c.H, c.K, c.V}));
  return in;
}

inline std::string shape_of(const Rwkv7Case& c) {
  return shape_text({c.B, c.T, c.H, c.K, c.V}, c.dtype);
}
inline double flops_per_token(const Rwkv7Case& c) { return 9.0 * double(c.H * c.K * c.V); }

// Keys and values that do not fill a vector, lengths around the chunk, every option off once.
inline std::vector<Rwkv7Case> odd_rwkv7s() {
  return {{.B = 1, .T = 1, .H = 1, .K = 1, .V = 1},
          {.B = 2, .T = 31, .H = 2, .K = 3, .V = 17},
          {.B = 1, .T = 33, .H = 1, .K = 20, .V = 5, .state = false},
          {.B = 1, .T = 97, .H = 2, .K = 33, .V = 64},
          {.B = 1, .T = 64, .H = 1, .K = 64, .V = 40, .r = false},
          {.B = 1, .T = 23, .H = 2, .K = 4, .V = 20, .lengths = {5, 0, 17, 1}},
          {.B = 1, .T = 130, .H = 1, .K = 4, .V = 6, .lengths = {10, 100, 20}}};
}

inline Cases<Rwkv7Case> rwkv7_cases() {
  const auto bf16 = torch::kBFloat16, fp32 = torch::kFloat32;
  Cases<Rwkv7Case> out;
  out.typical = {{.B = 2, .T = 67, .H = 3, .K = 16, .V = 24},
                 {.B = 1, .T = 130, .H = 2, .K = 64, .V = 64}};
  for (const auto dtype : {torch::kFloat64, fp32, bf16})
    for (const auto& [T, K, V] :
         {std::tuple{20, 10, 70}, {20, 20, 70}, {70, 64, 64}, {70, 90, 70}, {20, 130, 70}})
      out.kernels.push_back({.B = 1, .T = T, .H = 1, .K = K, .V = V, .dtype = dtype});
  out.timed = {{.B = 8, .T = 512, .H = 4, .K = 32, .V = 32, .dtype = fp32},
               {.B = 2, .T = 1024, .H = 8, .K = 64, .V = 64, .dtype = fp32}};
  out.timed_on_gpu = {{.B = 8, .T = 2048, .H = 16, .K = 64, .V = 64, .state = false, .dtype = bf16},
                      {.B = 256, .T = 64, .H = 4, .K = 32, .V = 32, .state = false, .dtype = bf16}};
  return out;
}

}  // namespace lrnn::ops
