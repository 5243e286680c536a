#pragma once
#include "ops/mlstm/case.h"
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

using ops::kMlstmCases;
using ops::MlstmCase;
inline Tensors mlstm_problem(const MlstmCase& c, torch::Dtype dtype = torch::kFloat64) {
  return ops::named(ops::make_mlstm(c, dtype));
}

}  // namespace lrnn::recurrence
