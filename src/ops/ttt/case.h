#pragma once
#include "ops/problem.h"
#include "ops/ttt/ttt.h"

namespace lrnn::ops {

struct TttCase {
  int64_t B = 2, T = 5, H = 2, D = 4, mini_batch = 4;
  bool state = true, q = true;
  torch::Dtype dtype = torch::kFloat64;
  std::vector<int64_t> lengths = {};  // packed sequences, B = 1 and T their sum
};

inline std::string shape_of(const TttCase& c) { return shape_text({c.B, c.T, c.H, c.D}, c.dtype); }
inline double flops_per_token(const TttCase& c) { return 6.0 * double(c.H * c.D * c.D); }

// Heads that do not fill a vector, mini-batches of every kind, every option off once. Two channels
// are left out: their norm knows nothing but a sign, and rounding is all that is left of a
// gradient.
inline std::vector<TttCase> odd_ttt() {
  return {{.B = 1, .T = 1, .H = 1, .D = 1},
          {.B = 2, .T = 31, .H = 2, .D = 17, .mini_batch = 7},
          {.B = 1, .T = 32, .H = 3, .D = 16, .mini_batch = 16, .state = false},
          {.B = 1, .T = 33, .H = 1, .D = 20, .mini_batch = 1},
          {.B = 1, .T = 70, .H = 2, .D = 33, .mini_batch = 64},
          {.B = 1, .T = 40, .H = 1, .D = 64, .mini_batch = 16, .q = false},
          {.B = 3, .T = 3, .H = 1, .D = 5, .mini_batch = 16},
          {.B = 1, .T = 23, .H = 2, .D = 8, .mini_batch = 4, .lengths = {5, 0, 17, 1}},
          {.B = 1, .T = 130, .H = 1, .D = 6, .mini_batch = 16, .lengths = {10, 100, 20}}};
}

// Weights and keys whose products have a variance of about 1, and steps that change them by less.
// Each sequence begins elsewhere in its mini-batch.
inline Ttt make_ttt(const TttCase& c, const Draw& draw) {
  const std::vector<int64_t> rows = {c.B, c.T, c.H, c.D};
  const int64_t S = sequences(c.B, c.lengths);
  Ttt in;
  in.mini_batch = c.mini_batch;
  if (c.q) in.q = draw.io(draw.normal(rows));
  in.k = draw.io(draw.normal(rows)), in.v = draw.io(draw.normal(rows));
  in.eta = draw.real(draw.uniform({c.B, c.T, c.H}) / double(c.D));
  in.weight = draw.real(1 + 0.3 * draw.normal({c.H, c.D}));
  in.bias = draw.real(0.3 * draw.normal({c.H, c.D}));
  in.cu_seqlens = bounds(c.lengths);
  if (c.state) {
    in.W = draw.real(draw.normal({S, 2, c.H, c.D, c.D}) / std::sqrt(double(c.D)));
    in.b = draw.real(0.3 * draw.normal({S, 2, c.H, c.D}));
    in.position = draw.real((draw.uniform({S}) * double(c.mini_batch)).floor());
  }
  return in;
}

inline Cases<TttCase> ttt_cases() {
  const auto bf16 = torch::kBFloat16, fp32 = torch::kFloat32;
  Cases<TttCase> out;
  out.typical = {{.B = 2, .T = 67, .H = 3, .D = 24, .mini_batch = 16},
                 {.B = 1, .T = 130, .H = 2, .D = 64, .mini_batch = 16}};
  for (const auto dtype : {torch::kFloat64, fp32, bf16})
    for (const auto& [T, D, mini_batch] : {std::tuple{20, 10, 3}, {40, 37, 16}, {20, 64, 1}})
      out.kernels.push_back(
          {.B = 1, .T = T, .H = 1, .D = D, .mini_batch = mini_batch, .dtype = dtype});
  out.timed = {{.B = 8, .T = 512, .H = 4, .D = 32, .mini_batch = 16, .dtype = fp32},
               {.B = 2, .T = 1024, .H = 8, .D = 64, .mini_batch = 16, .dtype = fp32}};
  for (const auto& [B, T, H, D] : {std::tuple{8, 2048, 16, 64}, {256, 64, 4, 32}})
    out.timed_on_gpu.push_back(
        {.B = B, .T = T, .H = H, .D = D, .mini_batch = 16, .state = false, .dtype = bf16});
  return out;
}

}  // namespace lrnn::ops
