#pragma once
#include <ostream>

#include "ops/delta_product/delta_product.h"
#include "ops/problem.h"

namespace lrnn::ops {

struct DeltaProductCase {
  int64_t B = 2, T = 5, N = 1, H = 2, K = 3, V = 3;
  bool gate = false, state = true, q = true;
  torch::Dtype dtype = torch::kFloat64;
  std::vector<int64_t> lengths = {};  // packed sequences, B = 1 and T their sum
  double cancels = 1;  // how much smaller a result is than its terms, whose rounding it inherits
};

inline std::ostream& operator<<(std::ostream& out, const DeltaProductCase& c) {
  return out << "B " << c.B << " T " << c.T << " N " << c.N << " H " << c.H << " K " << c.K << " V "
             << c.V << " gate " << c.gate << " state " << c.state << " q " << c.q << " " << c.dtype;
}

// Keys of length one and step sizes up to 2: reflections, which forget nothing.
inline DeltaProduct make_inputs(const DeltaProductCase& c, uint64_t seed = 1) {
  torch::manual_seed(seed);
  DeltaProduct in;
  if (c.q) in.q = unit({c.B, c.T, c.H, c.K}).to(c.dtype);
  in.k = unit({c.B, c.T, c.N, c.H, c.K}).to(c.dtype);
  in.v = normal({c.B, c.T, c.N, c.H, c.V}).to(c.dtype);
  in.beta = (2 * uniform({c.B, c.T, c.N, c.H})).to(c.dtype);
  if (c.gate) in.log_gate = (-0.3 * uniform({c.B, c.T, c.H})).to(wide(c.dtype));
  in.cu_seqlens = bounds(c.lengths);
  if (c.state) in.state = normal({sequences(c.B, c.lengths), c.H, c.K, c.V}).to(wide(c.dtype));
  return in;
}

// An odd length with a gate, and what tensor cores are made for.
inline std::vector<DeltaProductCase> typical_delta_products() {
  return {{.B = 2, .T = 67, .N = 2, .H = 3, .K = 16, .V = 24, .gate = true},
          {.B = 1, .T = 130, .N = 1, .H = 2, .K = 64, .V = 64, .state = false}};
}

}  // namespace lrnn::ops
