#pragma once
#include "ops/add_norm/add_norm.h"
#include "ops/norm/case.h"

namespace lrnn::ops {

inline Problem add_norm_problem(const RowsCase& c, const Draw& draw) {
  const Tensor x = make_rows(c, draw), y = make_rows(c, draw);
  const auto results = [](const std::pair<Tensor, Tensor>& out) -> Tensors {
    return {{"out s", out.first}, {"out h", out.second}};
  };
  return {{{"x", x}, {"y", y}, {"weight", draw.io(draw.normal({c.D}))}},
          [=](const Tensors& in) {
            return results(add_norm(in.at("x"), in.at("y"), in.at("weight"), 1e-6, false));
          },
          [=](const Tensors& in) {
            return results(add_norm_definition(in.at("x"), in.at("y"), in.at("weight"), 1e-6));
          },
          "out h"};
}

}  // namespace lrnn::ops
