#pragma once
#include "ops/norm/case.h"
#include "ops/swiglu/swiglu.h"

namespace lrnn::ops {

inline Swiglu make_swiglu(const RowsCase& c, torch::Dtype dtype) {
  torch::manual_seed(1);
  return {.gate = normal({c.rows, c.D}).to(dtype), .up = normal({c.rows, c.D}).to(dtype)};
}
inline SwigluHalves make_swiglu_halves(const RowsCase& c, torch::Dtype dtype) {
  torch::manual_seed(1);
  return {.gate_up = normal({c.rows, 2 * c.D}).to(dtype)};
}

}  // namespace lrnn::ops
