#pragma once
#include <ostream>

#include "ops/problem.h"
#include "ops/selective_scan/selective_scan.h"

namespace lrnn::ops {

struct ScanCase {
  int64_t B = 2, T = 5, D = 3, N = 4;
  bool negative = false, state = true, outputs = true, skip = true, gate = true, bias = true,
       softplus = true;
  torch::Dtype dtype = torch::kFloat64;
  std::vector<int64_t> lengths = {};  // packed sequences, B = 1 and T their sum
};

inline std::ostream& operator<<(std::ostream& out, const ScanCase& c) {
  return out << "B " << c.B << " T " << c.T << " D " << c.D << " N " << c.N << " negative "
             << c.negative << " state " << c.state << " outputs " << c.outputs << " skip " << c.skip
             << " gate " << c.gate << " bias " << c.bias << " softplus " << c.softplus;
}

// Both ranges, every option off once, channels and states that do not fill a vector or a group,
// lengths around the chunk.
inline const std::vector<ScanCase> kScanCases = {
    {.B = 1, .T = 1, .D = 1, .N = 1},
    {.B = 2, .T = 7, .D = 5, .N = 16, .negative = true},
    {.B = 1, .T = 31, .D = 17, .N = 3, .skip = false},
    {.B = 1, .T = 32, .D = 64, .N = 16, .negative = true, .state = false},
    {.B = 2, .T = 33, .D = 70, .N = 5, .negative = true, .gate = false},
    {.B = 1, .T = 97, .D = 9, .N = 17, .bias = false},
    {.B = 1, .T = 64, .D = 40, .N = 8, .negative = true, .outputs = false},
    {.B = 1, .T = 40, .D = 3, .N = 2, .negative = true, .softplus = false},
    {.B = 1, .T = 40, .D = 3, .N = 2, .skip = false, .gate = false, .bias = false},
    {.B = 1, .T = 23, .D = 6, .N = 4, .negative = true, .lengths = {5, 0, 17, 1}},
    {.B = 1, .T = 130, .D = 4, .N = 4, .lengths = {10, 100, 20}},
};

inline SelectiveScan make_scan(const ScanCase& c) {
  torch::manual_seed(1);
  const auto io = [&](const Tensor& x) { return x.to(c.dtype); };
  const auto real = [&](const Tensor& x) { return x.to(wide(c.dtype)); };
  SelectiveScan in;
  in.softplus = c.softplus, in.negative = c.negative;
  in.u = io(normal({c.B, c.T, c.D}));
  in.delta = io(c.softplus ? normal({c.B, c.T, c.D}) : normal({c.B, c.T, c.D}).abs());
  in.A = real(-(2 * uniform({c.D, c.N})).exp());
  in.B = io(normal({c.B, c.T, c.N}));
  if (c.outputs) in.C = io(normal({c.B, c.T, c.N}));
  if (c.outputs && c.skip) in.D = real(normal({c.D}));
  if (c.outputs && c.gate) in.z = io(normal({c.B, c.T, c.D}));
  if (c.bias) in.delta_bias = real(uniform({c.D}));
  in.cu_seqlens = bounds(c.lengths);
  if (c.state) in.state = real(normal({sequences(c.B, c.lengths), c.D, c.N}));
  return in;
}

inline std::vector<ScanCase> typical_scans() {
  return {{.B = 2, .T = 67, .D = 40, .N = 16, .negative = true},
          {.B = 1, .T = 130, .D = 64, .N = 16}};
}

}  // namespace lrnn::ops
