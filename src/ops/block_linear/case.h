#pragma once
#include "ops/block_linear/block_linear.h"
#include "ops/problem.h"

namespace lrnn::ops {

struct BlockLinearCase {
  int64_t B = 1, T = 70, blocks = 3, side = 4;
  torch::Dtype dtype = torch::kFloat64;
};

inline Problem block_linear_problem(const BlockLinearCase& c, const Draw& draw) {
  const Tensor x = draw.io(draw.normal({c.B, c.T, c.blocks * c.side})),
               weight = draw.io(draw.normal({c.blocks, c.side, c.side}));
  const auto by = [](auto f) {
    return [f](const Tensors& in) -> Tensors {
      return {{"out y", f(in.at("x"), in.at("weight"))}};
    };
  };
  return {{{"x", x}, {"weight", weight}}, by(block_linear), by(block_linear_definition), "out y"};
}

inline std::string shape_of(const BlockLinearCase& c) {
  return shape_text({c.B * c.T, c.blocks, c.side}, c.dtype);
}
inline double flops_per_token(const BlockLinearCase& c) {
  return 2.0 * double(c.blocks * c.side * c.side);
}

inline Cases<BlockLinearCase> block_linear_cases() {
  Cases<BlockLinearCase> out;
  out.typical = {{}, {.T = 9, .blocks = 2, .side = 40}};
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    out.kernels.push_back({.dtype = dtype});
  for (const auto dtype : {torch::kFloat32, torch::kBFloat16})
    out.timed_on_gpu.push_back({.T = 10240, .blocks = 64, .side = 4, .dtype = dtype});
  return out;
}

}  // namespace lrnn::ops
