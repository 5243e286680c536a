#pragma once
#include "ops/gated_mlp/gated_mlp.h"
#include "ops/norm/case.h"

namespace lrnn::ops {

// n hidden units.
inline Problem gated_mlp_problem(const RowsCase& c, const Draw& draw) {
  const Tensor x = make_rows(c, draw), gate = draw.io(0.1 * draw.normal({c.n, c.D})),
               up = draw.io(0.1 * draw.normal({c.n, c.D})),
               down = draw.io(0.1 * draw.normal({c.D, c.n}));
  using Function = Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
  const auto by = [](Function* f) {
    return [f](const Tensors& in) -> Tensors {
      return {{"out y", f(in.at("x"), in.at("gate"), in.at("up"), in.at("down"))}};
    };
  };
  return {{{"x", x}, {"gate", gate}, {"up", up}, {"down", down}},
          by(gated_mlp),
          by(gated_mlp_definition),
          "out y"};
}
inline Cases<RowsCase> gated_mlp_cases() {
  const auto bf16 = torch::kBFloat16;
  auto out =
      rows_cases({56}, {40}, {{.T = 16384, .D = 128, .n = 512, .products = 3, .dtype = bf16}});
  // As many rows as it takes to be one kernel, and a few more.
  for (const int64_t D : {64, 128})
    out.kernels.push_back({.T = 4100, .D = D, .n = 128, .dtype = bf16});
  out.timed = {{.T = 5248, .D = 128, .n = 512, .products = 3, .dtype = torch::kFloat32}};
  return out;
}

}  // namespace lrnn::ops
