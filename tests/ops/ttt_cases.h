#pragma once
#include "ops/ttt/case.h"
#include "tests/ops/recurrence.h"

// Random problems for the op, shared by the tests of its back ends.
namespace lrnn::recurrence {

inline Tensors ttt_outputs(const ops::TttResult& out) {
  Tensors named = {{"W after", out.W}, {"b after", out.b}, {"position after", out.position}};
  if (out.o.defined()) named["o"] = out.o;
  return named;
}
inline Op ttt_op(int64_t mini_batch, double eps = 1e-6) {
  const auto inputs = [=](const Tensors& x) {
    ops::Ttt in;
    in.mini_batch = mini_batch, in.eps = eps;
    return ops::with(in, x);
  };
  return {[=](auto& x) { return ttt_outputs(ops::ttt(inputs(x))); },
          [=](auto& x) { return ttt_outputs(ops::ttt_definition(inputs(x))); }};
}

using ops::odd_ttt;
using ops::TttCase;
inline Tensors ttt_problem(const TttCase& c, torch::Dtype dtype = torch::kFloat64) {
  return ops::named(ops::make_ttt(c, dtype));
}

// Steps of 0 and of a thousand times the usual, a norm of weight 0, and weights of 0.
inline std::vector<Tensors> extreme_ttt() {
  std::vector<Tensors> out(3, ttt_problem({.B = 2, .T = 13, .H = 2, .D = 7}));
  out[0]["eta"].slice(1, 0, 4).zero_(), out[0]["eta"].slice(1, 8, 10).mul_(1000);
  out[1]["weight"].slice(1, 0, 3).zero_();
  out[2]["W"].zero_(), out[2]["b"].zero_();
  return out;
}

// Words over 0 and 1, for mini-batches of one token, D = 4 and eps = 1. The key is always the same
// and the target always met, so that G shrinks Z, along itself; a 1 steps too far by the factor
// that makes +-Z a cycle which attracts (D7 of docs/theory.md), a 0 not at all.
inline constexpr double kTttParityEps = 1;
inline Tensors ttt_parity(int64_t T) {
  torch::manual_seed(3);
  const Tensor bit = torch::randint(2, {1, T, 1}, torch::kInt64).to(torch::kFloat32);
  const Tensor key = torch::zeros({1, T, 1, 4}), direction = torch::tensor({1.f, -1.f, 1.f, -1.f});
  Tensor b = torch::zeros({1, 2, 1, 4});
  b.copy_(0.3 * direction);
  return {{"q", key},
          {"k", key},
          {"v", key},
          {"eta", 2.5 * bit},
          {"weight", torch::ones({1, 4})},
          {"bias", torch::zeros({1, 4})},
          {"b", b}};
}
// Whether the sign of every answer is the parity so far.
inline bool ttt_follows(const Tensors& in, const Tensor& o) {
  const Tensor parity = in.at("eta").gt(0).cumsum(1).remainder(2);  // [1,T,1]
  return torch::equal(o.select(-1, 0).lt(0), parity.eq(1)) && o.abs().min().item<double>() > 0.2;
}

}  // namespace lrnn::recurrence
