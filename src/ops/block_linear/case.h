#pragma once
#include "ops/block_linear/block_linear.h"
#include "ops/norm/case.h"

namespace lrnn::ops {

// D channels in blocks of n.
inline Problem block_linear_problem(const RowsCase& c, const Draw& draw) {
  const Tensor x = make_rows(c, draw), weight = draw.io(draw.normal({c.D / c.n, c.n, c.n}));
  const auto by = [](auto f) {
    return [f](const Tensors& in) -> Tensors {
      return {{"out y", f(in.at("x"), in.at("weight"))}};
    };
  };
  return {{{"x", x}, {"weight", weight}}, by(block_linear), by(block_linear_definition), "out y"};
}
inline Cases<RowsCase> block_linear_cases() {
  return rows_cases({4}, {12},
                    {{.T = 10240, .D = 256, .n = 4, .dtype = torch::kFloat32},
                     {.T = 10240, .D = 256, .n = 4, .dtype = torch::kBFloat16}});
}

}  // namespace lrnn::ops
