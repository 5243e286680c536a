#pragma once
#include "ops/problem.h"
#include "ops/take/take.h"

namespace lrnn::ops {

struct TakeCase {
  int64_t B = 1, T = 90, D = 40, table = 5;
  torch::Dtype dtype = torch::kFloat64;
};

inline Problem take_problem(const TakeCase& c, const Draw& draw) {
  const Tensor table = draw.io(draw.normal({c.table, c.D})),
               index =
                   (draw.uniform({c.B, c.T}) * double(c.table + 1)).floor().to(torch::kInt64) - 1;
  const auto by = [](auto f) {
    return [f](const Tensors& in) -> Tensors {
      return {{"out rows", f({in.at("table")}, in.at("index"))[0]}};
    };
  };
  return {{{"table", table}, {"index", index}}, by(take), by(take_definition), "out rows"};
}

inline std::string shape_of(const TakeCase& c) {
  return shape_text({c.B * c.T, c.D}, c.dtype) + " of " + std::to_string(c.table);
}
inline double flops_per_token(const TakeCase&) { return 0; }

inline Cases<TakeCase> take_cases() {
  Cases<TakeCase> out;
  out.typical = {{}};
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const int64_t D : {5, 136})
      for (const int64_t table : {5, 70})  // few are summed in place, many are sorted first
        out.kernels.push_back({.D = D, .table = table, .dtype = dtype});
  for (const auto& [T, D, dtype] :
       {std::tuple{65536, 1024, torch::kBFloat16}, {16384, 128, torch::kFloat32}})
    for (const int64_t table : {8, 4096})
      out.timed_on_gpu.push_back({.T = T, .D = D, .table = table, .dtype = dtype});
  return out;
}

}  // namespace lrnn::ops
