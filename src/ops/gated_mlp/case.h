#pragma once
#include "ops/gated_mlp/gated_mlp.h"
#include "ops/problem.h"

namespace lrnn::ops {

struct GatedMlpCase {
  int64_t B = 1, T = 67, D = 40, hidden = 56;
  torch::Dtype dtype = torch::kFloat64;
};

inline Problem gated_mlp_problem(const GatedMlpCase& c, const Draw& draw) {
  const Tensor x = draw.io(draw.normal({c.B, c.T, c.D})),
               gate = draw.io(0.1 * draw.normal({c.hidden, c.D})),
               up = draw.io(0.1 * draw.normal({c.hidden, c.D})),
               down = draw.io(0.1 * draw.normal({c.D, c.hidden}));
  const auto by = [](auto f) {
    return [f](const Tensors& in) -> Tensors {
      return {{"out y", f(in.at("x"), in.at("gate"), in.at("up"), in.at("down"))}};
    };
  };
  return {{{"x", x}, {"gate", gate}, {"up", up}, {"down", down}},
          by(gated_mlp),
          by(gated_mlp_definition),
          "out y"};
}

inline std::string shape_of(const GatedMlpCase& c) {
  return shape_text({c.B * c.T, c.D, c.hidden}, c.dtype);
}
inline double flops_per_token(const GatedMlpCase& c) { return 6.0 * double(c.D * c.hidden); }

inline Cases<GatedMlpCase> gated_mlp_cases() {
  const auto bf16 = torch::kBFloat16;
  Cases<GatedMlpCase> out;
  out.typical = {{}};
  // As many rows as it takes to be one kernel, and a few more.
  for (const int64_t D : {64, 128})
    out.kernels.push_back({.T = 4100, .D = D, .hidden = 128, .dtype = bf16});
  out.timed = {{.T = 5248, .D = 128, .hidden = 512, .dtype = torch::kFloat32}};
  out.timed_on_gpu = {{.T = 16384, .D = 128, .hidden = 512, .dtype = bf16}};
  return out;
}

}  // namespace lrnn::ops
