#pragma once
#include "ops/norm/case.h"
#include "ops/take/take.h"

namespace lrnn::ops {

// Rows of a table of n, some of them -1.
inline Problem take_problem(const RowsCase& c, const Draw& draw) {
  const Tensor table = draw.io(draw.normal({c.n, c.D})),
               index = (draw.uniform({c.B, c.T}) * double(c.n + 1)).floor().to(torch::kInt64) - 1;
  const auto by = [](auto f) {
    return [f](const Tensors& in) -> Tensors {
      return {{"out rows", f({in.at("table")}, in.at("index"))[0]}};
    };
  };
  return {{{"table", table}, {"index", index}}, by(take), by(take_definition), "out rows"};
}
inline Cases<RowsCase> take_cases() {
  const auto bf16 = torch::kBFloat16, fp32 = torch::kFloat32;
  // Few rows are summed in place, many are sorted first.
  return rows_cases({5, 70}, {5, 136},
                    {{.T = 65536, .D = 1024, .n = 8, .dtype = bf16},
                     {.T = 65536, .D = 1024, .n = 4096, .dtype = bf16},
                     {.T = 16384, .D = 128, .n = 8, .dtype = fp32},
                     {.T = 16384, .D = 128, .n = 4096, .dtype = fp32}});
}

}  // namespace lrnn::ops
