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

inline SelectiveScan make_scan(const ScanCase& c, const Draw& draw) {
  SelectiveScan in;
  in.softplus = c.softplus, in.negative = c.negative;
  in.u = draw.io(draw.normal({c.B, c.T, c.D}));
  const Tensor delta = draw.normal({c.B, c.T, c.D});
  in.delta = draw.io(c.softplus ? delta : delta.abs());
  in.A = draw.real(-(2 * draw.uniform({c.D, c.N})).exp());
  in.B = draw.io(draw.normal({c.B, c.T, c.N}));
  if (c.outputs) in.C = draw.io(draw.normal({c.B, c.T, c.N}));
  if (c.outputs && c.skip) in.D = draw.real(draw.normal({c.D}));
  if (c.outputs && c.gate) in.z = draw.io(draw.normal({c.B, c.T, c.D}));
  if (c.bias) in.delta_bias = draw.real(draw.uniform({c.D}));
  in.cu_seqlens = bounds(c.lengths);
  if (c.state) in.state = draw.real(draw.normal({sequences(c.B, c.lengths), c.D, c.N}));
  return in;
}

inline std::string shape_of(const ScanCase& c) {
  return shape_text({c.B, c.T, c.D, c.N}, c.dtype) + (c.gate ? " z" : "") +
         (c.negative ? " [-1,1]" : "");
}
inline double flops_per_token(const ScanCase& c) { return 7.0 * double(c.D * c.N); }

inline Cases<ScanCase> scan_cases() {
  const auto bf16 = torch::kBFloat16, fp32 = torch::kFloat32;
  Cases<ScanCase> out;
  out.typical = {{.B = 2, .T = 67, .D = 40, .N = 16, .negative = true},
                 {.B = 1, .T = 130, .D = 64, .N = 16}};
  for (const auto dtype : {torch::kFloat64, fp32, bf16})
    for (const int64_t N : {5, 16, 40})  // fewer than, as many as and more than two threads hold
      for (const bool negative : {false, true})
        out.kernels.push_back({.B = 1,
                               .T = 37,
                               .D = 136,
                               .N = N,
                               .negative = negative,
                               .gate = negative,
                               .dtype = dtype});
  out.timed = {{.B = 64, .T = 64, .D = 256, .N = 16, .dtype = fp32},  // the parity model
               {.B = 64, .T = 64, .D = 256, .N = 16, .negative = true, .dtype = fp32},
               {.B = 2, .T = 1024, .D = 1536, .N = 16, .negative = true, .dtype = fp32}};
  for (const auto& [B, T, D, gate, negative] : {std::tuple{8, 2048, 4096, false, false},
                                                {8, 2048, 4096, true, false},
                                                {8, 2048, 4096, true, true},
                                                {256, 64, 256, true, true}})
    out.timed_on_gpu.push_back({.B = B,
                                .T = T,
                                .D = D,
                                .N = 16,
                                .negative = negative,
                                .state = false,
                                .gate = gate,
                                .dtype = bf16});
  return out;
}

}  // namespace lrnn::ops
