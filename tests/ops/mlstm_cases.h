#pragma once
#include "ops/mlstm/mlstm.h"
#include "tests/ops/recurrence.h"

// Random problems for the op, shared by the tests of its back ends.
namespace lrnn::recurrence {

inline ops::Mlstm mlstm_inputs(const Tensors& x) {
  return {.q = get(x, "q"),
          .k = get(x, "k"),
          .v = get(x, "v"),
          .i = get(x, "i"),
          .f = get(x, "f"),
          .state = {get(x, "C"), get(x, "n"), get(x, "m")},
          .scale = {},
          .cu_seqlens = get(x, "cu_seqlens")};
}
inline Tensors mlstm_outputs(const ops::MlstmResult& out) {
  return {
      {"h", out.h}, {"final C", out.state.C}, {"final n", out.state.n}, {"final m", out.state.m}};
}

inline const Op kMlstm = {
    [](auto& x) { return mlstm_outputs(ops::mlstm(mlstm_inputs(x))); },
    [](auto& x) { return mlstm_outputs(ops::mlstm_definition(mlstm_inputs(x))); }};

struct MlstmCase {
  int64_t B = 2, T = 5, H = 2, K = 3, V = 3;
  bool state = true;
  std::vector<int64_t> lengths = {};
};

inline Tensors mlstm_problem(const MlstmCase& c, torch::Dtype dtype = torch::kFloat64) {
  torch::manual_seed(1);
  const auto wide = dtype == torch::kFloat64 ? dtype : torch::kFloat32;
  const auto normal = [](std::vector<int64_t> sizes) {
    return torch::randn(sizes, torch::kFloat64);
  };
  const int64_t S = c.lengths.empty() ? c.B : int64_t(c.lengths.size());
  Tensors in;
  in["q"] = normal({c.B, c.T, c.H, c.K}).to(dtype),
  in["k"] = normal({c.B, c.T, c.H, c.K}).to(dtype);
  in["v"] = normal({c.B, c.T, c.H, c.V}).to(dtype);
  in["i"] = (2 * normal({c.B, c.T, c.H})).to(dtype);
  in["f"] = (2 + 2 * normal({c.B, c.T, c.H})).to(dtype);
  if (c.state) {
    in["C"] = normal({S, c.H, c.K, c.V}).to(wide), in["n"] = normal({S, c.H, c.K}).to(wide);
    in["m"] = normal({S, c.H}).to(wide);
  }
  if (!c.lengths.empty()) in["cu_seqlens"] = bounds(c.lengths);
  return in;
}

inline const std::vector<MlstmCase> kMlstmCases = {
    {.B = 3, .T = 1, .H = 1, .K = 1, .V = 1},
    {.B = 3, .T = 7, .H = 2, .K = 5, .V = 3, .state = false},
    {.B = 1, .T = 64, .H = 2, .K = 16, .V = 20},
    {.B = 2, .T = 65, .H = 3, .K = 33, .V = 16},
    {.B = 1, .T = 200, .H = 2, .K = 8, .V = 32, .state = false},
    {.B = 1, .T = 170, .H = 1, .K = 64, .V = 64},
    {.B = 1, .T = 176, .H = 2, .K = 8, .V = 9, .lengths = {5, 0, 130, 1, 40}},
};

}  // namespace lrnn::recurrence
