#pragma once
#include "ops/norm/case.h"
#include "ops/swiglu/swiglu.h"

namespace lrnn::ops {

inline Swiglu make_swiglu(const RowsCase& c, const Draw& draw) {
  const Tensor gate = make_rows(c, draw);
  return {.gate = gate, .up = make_rows(c, draw)};
}
inline SwigluHalves make_swiglu_halves(const RowsCase& c, const Draw& draw) {
  return {.gate_up = draw.io(draw.normal({c.B, c.T, 2 * c.D}))};
}

}  // namespace lrnn::ops
