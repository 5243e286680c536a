#pragma once
#include "ops/linears/linears.h"
#include "ops/norm/case.h"

namespace lrnn::ops {

// A product with a matrix of few rows, which a GPU has a kernel for.
inline Problem few_linear_problem(const RowsCase& c, const Draw& draw) {
  const Tensor x = make_rows(c, draw), weight = draw.io(draw.normal({c.n, c.D}));
  return {{{"x", x}, {"weight", weight}},
          [](const Tensors& in) -> Tensors {
            return {{"out y", ops::linear(in.at("x"), in.at("weight"))}};
          },
          [](const Tensors& in) -> Tensors {
            return {{"out y", at::linear(in.at("x"), in.at("weight"))}};
          },
          "out y"};
}
inline Cases<RowsCase> few_linear_cases() {
  return rows_cases({2, 3, 7}, {40}, {{.T = 16384, .D = 128, .n = 4, .dtype = torch::kBFloat16}});
}

}  // namespace lrnn::ops
