#pragma once
#include "ops/slstm/case.h"
#include "tests/ops/recurrence.h"

// Random problems for the op, shared by the tests of its back ends.
namespace lrnn::recurrence {

inline ops::Slstm slstm_inputs(const Tensors& x) { return ops::with(ops::Slstm{}, x); }
inline Tensors slstm_outputs(const ops::SlstmResult& out) {
  return {{"h", out.h}, {"final", out.state}};
}

inline const Op kSlstm = {
    [](auto& x) { return slstm_outputs(ops::slstm(slstm_inputs(x))); },
    [](auto& x) { return slstm_outputs(ops::slstm_definition(slstm_inputs(x))); }};

using ops::kSlstmCases;
using ops::SlstmCase;
inline Tensors slstm_problem(const SlstmCase& c, torch::Dtype dtype = torch::kFloat64) {
  return ops::named(ops::make_slstm(c, dtype));
}

}  // namespace lrnn::recurrence
