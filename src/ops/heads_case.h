#pragma once
#include "ops/problem.h"

// What recurrences with a state [K,V] per head are asked alike: gated linear attention, RWKV-7 and
// Titans. kFlops is what one does with an element of the state for a token.
namespace lrnn::ops {

template <int kFlops> struct HeadsCaseOf {
  int64_t B = 2, T = 5, H = 2, K = 3, V = 4;
  bool state = true, q = true, negative = false;  // negative: GLA alone
  torch::Dtype dtype = torch::kFloat64;
  std::vector<int64_t> lengths = {};  // packed sequences, B = 1 and T their sum
};

template <int kFlops> std::string shape_of(const HeadsCaseOf<kFlops>& c) {
  return shape_text({c.B, c.T, c.H, c.K, c.V}, c.dtype);
}
template <int kFlops> double flops_per_token(const HeadsCaseOf<kFlops>& c) {
  return double(kFlops) * double(c.H * c.K * c.V);
}

// Keys and values that do not fill a vector, lengths around the chunk, every option off once.
template <class Case> std::vector<Case> odd_heads() {
  return {{.B = 1, .T = 1, .H = 1, .K = 1, .V = 1},
          {.B = 2, .T = 31, .H = 2, .K = 3, .V = 17},
          {.B = 1, .T = 32, .H = 3, .K = 16, .V = 16, .state = false, .negative = true},
          {.B = 1, .T = 33, .H = 1, .K = 20, .V = 5, .negative = true},
          {.B = 1, .T = 97, .H = 2, .K = 33, .V = 64, .negative = true},
          {.B = 1, .T = 64, .H = 1, .K = 64, .V = 40, .q = false},
          {.B = 1, .T = 23, .H = 2, .K = 4, .V = 20, .negative = true, .lengths = {5, 0, 17, 1}},
          {.B = 1, .T = 130, .H = 1, .K = 4, .V = 6, .lengths = {10, 100, 20}}};
}

template <class Case> Cases<Case> heads_cases() {
  const auto bf16 = torch::kBFloat16, fp32 = torch::kFloat32;
  Cases<Case> out;
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

}  // namespace lrnn::ops
