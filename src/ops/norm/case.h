#pragma once
#include "ops/norm/norm.h"
#include "ops/problem.h"

namespace lrnn::ops {

// Rows of ops that know no time.
struct RowsCase {
  int64_t B = 1, T = 67, D = 40;
  torch::Dtype dtype = torch::kFloat64;
};

inline RmsNorm make_rms_norm(const RowsCase& c, const Draw& draw) {
  const Tensor x = draw.io(draw.normal({c.B, c.T, c.D}));
  return {.x = x, .weight = draw.io(draw.normal({c.D})), .eps = 1e-6};
}
inline L2Norm make_l2_norm(const RowsCase& c, const Draw& draw) {
  return {.x = draw.io(draw.normal({c.B, c.T, c.D})), .eps = 1e-6};
}

inline std::string shape_of(const RowsCase& c) { return shape_text({c.B * c.T, c.D}, c.dtype); }
inline double flops_per_token(const RowsCase& c) { return 5.0 * double(c.D); }

inline Cases<RowsCase> rows_cases() {
  Cases<RowsCase> out;
  // Rows that fill no vector, and such as models have.
  out.typical = {{}, {.T = 9, .D = 128}};
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const int64_t D : {5, 136}) out.kernels.push_back({.T = 70, .D = D, .dtype = dtype});
  out.timed = {{.T = 5248, .D = 128, .dtype = torch::kFloat32},  // a batch of parity, of the demo
               {.T = 650, .D = 32, .dtype = torch::kFloat32}};
  out.timed_on_gpu = {{.T = 65536, .D = 1024, .dtype = torch::kBFloat16},
                      {.T = 16384, .D = 128, .dtype = torch::kFloat32}};
  return out;
}

}  // namespace lrnn::ops
