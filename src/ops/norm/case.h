#pragma once
#include "ops/norm/norm.h"
#include "ops/problem.h"

namespace lrnn::ops {

// Rows of ops that know no time.
struct RowsCase {
  int64_t B = 1, T = 67, D = 40;
  int64_t n = 0;         // of a matrix or a table beside them, where the op has one
  int64_t products = 1;  // with such matrices
  torch::Dtype dtype = torch::kFloat64;
};

inline Tensor make_rows(const RowsCase& c, const Draw& draw) {
  return draw.io(draw.normal({c.B, c.T, c.D}));
}
inline RmsNorm make_rms_norm(const RowsCase& c, const Draw& draw) {
  const Tensor x = make_rows(c, draw);
  return {.x = x, .weight = draw.io(draw.normal({c.D})), .eps = 1e-6};
}
inline L2Norm make_l2_norm(const RowsCase& c, const Draw& draw) {
  return {.x = make_rows(c, draw), .eps = 1e-6};
}

inline std::string shape_of(const RowsCase& c) {
  return c.n ? shape_text({c.B * c.T, c.D, c.n}, c.dtype) : shape_text({c.B * c.T, c.D}, c.dtype);
}
inline double flops_per_token(const RowsCase& c) {
  return double(c.D * (c.n ? 2 * c.n * c.products : 5));
}

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

// With a matrix of n rows or columns, or a table of n rows.
inline Cases<RowsCase> rows_cases(const std::vector<int64_t>& n, const std::vector<int64_t>& D,
                                  const std::vector<RowsCase>& timed_on_gpu) {
  Cases<RowsCase> out;
  out.typical = {{.D = D[0], .n = n[0]}};
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const int64_t columns : D)
      for (const int64_t rows : n)
        out.kernels.push_back({.T = 90, .D = columns, .n = rows, .dtype = dtype});
  out.timed_on_gpu = timed_on_gpu;
  return out;
}

}  // namespace lrnn::ops
