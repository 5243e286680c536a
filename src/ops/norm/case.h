#pragma once
#include "ops/norm/norm.h"
#include "ops/problem.h"

namespace lrnn::ops {

struct RowsCase {
  int64_t rows = 67, D = 40;
};

inline RmsNorm make_rms_norm(const RowsCase& c, torch::Dtype dtype) {
  torch::manual_seed(1);
  return {.x = normal({c.rows, c.D}).to(dtype), .weight = normal({c.D}).to(dtype), .eps = 1e-6};
}
inline L2Norm make_l2_norm(const RowsCase& c, torch::Dtype dtype) {
  torch::manual_seed(1);
  return {.x = normal({c.rows, c.D}).to(dtype), .eps = 1e-6};
}

// Rows that fill no vector, and such as models have.
inline std::vector<RowsCase> typical_rows() { return {{}, {.rows = 9, .D = 128}}; }

}  // namespace lrnn::ops
