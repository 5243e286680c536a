#pragma once
#include <gtest/gtest.h>

#include "ops/diagonal/case.h"
#include "ops/torch.h"

// Gated linear attention and RWKV-7 are asked the same questions: one case for either.
namespace lrnn {

using TensorMap = ops::Tensors;

struct DiagonalCase {
  bool rwkv7 = false;
  int64_t B = 2, T = 5, H = 2, K = 3, V = 4;
  bool negative = false, state = true, q = true;
  torch::Dtype dtype = torch::kFloat64;
  std::vector<int64_t> lengths = {};

  ops::HeadsCase heads() const { return {B, T, H, K, V, state, q, negative, dtype, lengths}; }
  // How the op calls what both have.
  const char* decay() const { return rwkv7 ? "log_w" : "log_gate"; }
  const char* query() const { return rwkv7 ? "r" : "q"; }
};

inline std::ostream& operator<<(std::ostream& out, const DiagonalCase& c) {
  return out << (c.rwkv7 ? "rwkv7 " : "gla ") << ops::shape_of(c.heads()) << " negative "
             << c.negative << " state " << c.state << " q " << c.q;
}

inline std::vector<DiagonalCase> diagonal_cases() {
  std::vector<DiagonalCase> out;
  for (const bool rwkv7 : {false, true})
    for (const auto& c : ops::odd_heads<ops::HeadsCase>())
      out.push_back(
          {rwkv7, c.B, c.T, c.H, c.K, c.V, c.negative && !rwkv7, c.state, c.q, c.dtype, c.lengths});
  return out;
}

inline ops::Problem diagonal_problem(const DiagonalCase& c) {
  if (c.rwkv7)
    return ops::problem_of(ops::make_rwkv7(c.heads(), c.dtype), ops::rwkv7, ops::rwkv7_definition);
  return ops::problem_of(ops::make_gla(c.heads(), c.dtype), ops::gated_linear_attention,
                         ops::gated_linear_attention_definition);
}
inline TensorMap diagonal_inputs(const DiagonalCase& c) { return diagonal_problem(c).in; }

// f(case, inputs): decays of exactly 0 and of exactly 1.
template <class F> void with_extreme_decays(F f) {
  for (const bool rwkv7 : {false, true})
    for (const bool negative : {false, true}) {
      const DiagonalCase c{
          .rwkv7 = rwkv7, .T = 70, .K = 16, .V = 8, .negative = negative && !rwkv7};
      auto in = diagonal_inputs(c);
      in[c.decay()].select(1, 20).fill_(-std::numeric_limits<double>::infinity());
      in[c.decay()].select(1, 33).fill_(0), in[c.decay()].select(1, 64).fill_(-200);
      SCOPED_TRACE(testing::Message() << c);
      f(c, in);
    }
}

// o and the final state, by the op or by its definition.
inline std::pair<torch::Tensor, torch::Tensor> run_diagonal(const DiagonalCase& c,
                                                            const TensorMap& x,
                                                            bool definition = false) {
  const auto problem = diagonal_problem(c);
  auto out = (definition ? problem.definition : problem.kernel)(x);
  return {out["out o"], out["out state"]};
}

// Outputs and the gradients of a fixed random weighting of them.
inline TensorMap diagonal_everything(const DiagonalCase& c, const TensorMap& x,
                                     bool definition = false) {
  const auto problem = diagonal_problem(c);
  return definition ? ops::everything(ops::in_double(x), problem.definition)
                    : ops::everything(x, problem.kernel);
}

}  // namespace lrnn
