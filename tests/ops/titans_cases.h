#pragma once
#include "ops/titans/case.h"
#include "tests/ops/recurrence.h"

// Random problems for the op, shared by the tests of its back ends.
namespace lrnn::recurrence {

inline ops::Titans titans_inputs(const Tensors& x) { return ops::with(ops::Titans{}, x); }
inline Tensors titans_outputs(const ops::TitansResult& out) {
  Tensors named = {{"final", out.state}, {"momentum after", out.momentum}};
  if (out.o.defined()) named["o"] = out.o;
  return named;
}

inline const Op kTitans = {
    [](auto& x) { return titans_outputs(ops::titans(titans_inputs(x))); },
    [](auto& x) { return titans_outputs(ops::titans_definition(titans_inputs(x))); }};

using ops::TitansCase;
inline std::vector<TitansCase> odd_titans() { return ops::odd_heads<TitansCase>(); }
inline Tensors titans_problem(const TitansCase& c, torch::Dtype dtype = torch::kFloat64) {
  return ops::named(ops::make_titans(c, dtype));
}

// Every end of the gates, with every end of the others, in 27 tokens.
inline Tensors extreme_titans() {
  Tensors in = titans_problem({.B = 1, .T = 27, .H = 2, .K = 7, .V = 9});
  for (int64_t t = 0; t < 27; ++t) {
    in["theta"].select(1, t).fill_(double(t % 3));  // 0, 1 and a reflection
    in["eta"].select(1, t).fill_(0.5 * double(t / 3 % 3));
    in["alpha"].select(1, t).fill_(0.5 * double(t / 9));
  }
  return in;
}

// Words over 0 and 1 and their parity as +1 and -1. A 1 forgets all and steps by 1 against what
// it reads, m <- -m, with every gate in [0,1]; a 0 does nothing.
inline Tensors titans_parity(int64_t T) {
  torch::manual_seed(3);
  const Tensor bit = torch::randint(2, {1, T, 1}, torch::kInt64).to(torch::kFloat32);
  const Tensor one = torch::ones({1, T, 1, 1});
  return {{"q", one},
          {"k", one},
          {"v", 0 * one},
          {"theta", bit},
          {"alpha", bit},
          {"eta", 0 * bit},
          {"state", torch::ones({1, 1, 1, 1})}};
}
inline Tensor titans_parity_answers(const Tensors& in) {
  return (1 - 2 * in.at("theta").cumsum(1).remainder(2)).unsqueeze(-1);
}

}  // namespace lrnn::recurrence
