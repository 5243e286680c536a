#pragma once
#include "ops/mlstm/case.h"
#include "tests/ops/recurrence.h"

// Random problems for the op, shared by the tests of its back ends.
namespace lrnn::recurrence {

inline ops::Mlstm mlstm_inputs(const Tensors& x) { return ops::with(ops::Mlstm{}, x); }
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
