#pragma once
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/row_cases.h"

namespace lrnn::ops {

// n tokens to choose from. Rows point at one of them, so that rounding does not decide which is the
// largest; the target is that one or the next, and every fifth row has none.
inline LinearCrossEntropy make_linear_cross_entropy(const RowsCase& c, const Draw& draw) {
  const int64_t R = c.B * c.T;
  const Tensor weight = draw.normal({c.n, c.D}) / std::sqrt(double(c.D)),
               row = torch::arange(R, weight.options().dtype(torch::kInt64)),
               near = (row * 7) % c.n,
               h = 4 * weight.index_select(0, near) +
                   draw.normal({R, c.D}) / std::sqrt(double(c.D)),
               other = (near + 1) % c.n,
               target = torch::where(row % 3 == 0, other, near).masked_fill(row % 5 == 4, -1);
  return {.h = draw.io(h), .weight = draw.io(weight), .target = target, .share = 1 / double(R)};
}

inline Cases<RowsCase> linear_cross_entropy_cases() {
  const auto bf16 = torch::kBFloat16;
  auto out = rows_cases({50}, {40},
                        {{.T = 32768, .D = 1024, .n = 32000, .products = 3, .dtype = bf16},
                         {.T = 16384, .D = 2048, .n = 32000, .products = 3, .dtype = bf16}});
  // More rows than one chunk, and rows of more packs than a block has threads.
  out.kernels.push_back(
      {.T = LinearCrossEntropy::kRowsAtOnce + 5, .D = 24, .n = 70, .dtype = torch::kFloat32});
  out.kernels.push_back({.T = 20, .D = 64, .n = 5003, .dtype = bf16});
  out.timed = {{.T = 2048, .D = 256, .n = 512, .products = 3, .dtype = torch::kFloat32}};
  return out;
}

}  // namespace lrnn::ops
