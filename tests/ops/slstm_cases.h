#pragma once
#include "ops/slstm/slstm.h"
#include "tests/ops/recurrence.h"

// Random problems for the op, shared by the tests of its back ends.
namespace lrnn::recurrence {

inline ops::Slstm slstm_inputs(const Tensors& x) {
  return {.wx = get(x, "wx"),
          .R = get(x, "R"),
          .bias = get(x, "bias"),
          .state = get(x, "state"),
          .cu_seqlens = get(x, "cu_seqlens")};
}
inline Tensors slstm_outputs(const ops::SlstmResult& out) {
  return {{"h", out.h}, {"final", out.state}};
}

inline const Op kSlstm = {
    [](auto& x) { return slstm_outputs(ops::slstm(slstm_inputs(x))); },
    [](auto& x) { return slstm_outputs(ops::slstm_definition(slstm_inputs(x))); }};

struct SlstmCase {
  int64_t B = 2, T = 5, H = 2, D = 3;
  bool bias = true, state = true;
  std::vector<int64_t> lengths = {};
};

inline Tensors slstm_problem(const SlstmCase& c, torch::Dtype dtype = torch::kFloat64) {
  torch::manual_seed(1);
  const auto wide = dtype == torch::kFloat64 ? dtype : torch::kFloat32;
  const auto normal = [](std::vector<int64_t> sizes) {
    return torch::randn(sizes, torch::kFloat64);
  };
  const int64_t S = c.lengths.empty() ? c.B : int64_t(c.lengths.size());
  Tensors in;
  // Either of i and log sigmoid(f) + m is the larger often enough.
  in["wx"] = (2 * normal({c.B, c.T, c.H, 4, c.D})).to(dtype);
  in["R"] = (normal({c.H, c.D, 4, c.D}) / std::sqrt(double(c.D))).to(dtype);
  if (c.bias) in["bias"] = normal({c.H, 4, c.D}).to(dtype);
  if (c.state) {
    Tensor state = normal({S, 4, c.H, c.D});
    state.select(1, 2).abs_();
    in["state"] = state.to(wide);
  }
  if (!c.lengths.empty()) in["cu_seqlens"] = bounds(c.lengths);
  return in;
}

inline const std::vector<SlstmCase> kSlstmCases = {
    {.B = 1, .T = 1, .H = 1, .D = 1},
    {.B = 3, .T = 7, .H = 2, .D = 5, .bias = false, .state = false},
    {.B = 2, .T = 33, .H = 1, .D = 16},
    {.B = 1, .T = 70, .H = 3, .D = 32, .state = false},
    {.B = 1, .T = 40, .H = 1, .D = 37},
    {.B = 1, .T = 36, .H = 2, .D = 8, .lengths = {5, 0, 30, 1}},
    {.B = 40, .T = 3, .H = 1, .D = 4},
};

}  // namespace lrnn::recurrence
