#pragma once
#include "ops/linears/linears.h"
#include "ops/problem.h"

namespace lrnn::ops {

// A product with a matrix of few rows, which a GPU has a kernel for.
struct FewLinearCase {
  int64_t B = 1, T = 77, D = 40, n = 3;
  torch::Dtype dtype = torch::kFloat64;
};

inline Problem few_linear_problem(const FewLinearCase& c, const Draw& draw) {
  const Tensor x = draw.io(draw.normal({c.B, c.T, c.D})), weight = draw.io(draw.normal({c.n, c.D}));
  return {{{"x", x}, {"weight", weight}},
          [](const Tensors& in) -> Tensors {
            return {{"out y", ops::linear(in.at("x"), in.at("weight"))}};
          },
          [](const Tensors& in) -> Tensors {
            return {{"out y", at::linear(in.at("x"), in.at("weight"))}};
          },
          "out y"};
}

inline std::string shape_of(const FewLinearCase& c) {
  return shape_text({c.B * c.T, c.D, c.n}, c.dtype);
}
inline double flops_per_token(const FewLinearCase& c) { return 2.0 * double(c.D * c.n); }

inline Cases<FewLinearCase> few_linear_cases() {
  Cases<FewLinearCase> out;
  out.typical = {{}};
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const int64_t n : {2, 3, 7}) out.kernels.push_back({.n = n, .dtype = dtype});
  out.timed_on_gpu = {{.T = 16384, .D = 128, .n = 4, .dtype = torch::kBFloat16}};
  return out;
}

}  // namespace lrnn::ops
