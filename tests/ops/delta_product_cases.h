#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "ops/delta_product/case.h"
#include "ops/torch.h"

// Random problems for the delta product, shared by its tests.
namespace lrnn {

using Case = ops::DeltaProductCase;
inline ops::DeltaProduct make_inputs(const Case& c) { return ops::make_delta_product(c, c.dtype); }

// Every T, N, K and V of interest occurs, with and without gate, state and outputs.
inline std::vector<Case> odd_cases() {
  return {
      // One number, S + beta k (v - S k), which nearly is zero: no other elements make up for it.
      {.B = 1, .T = 1, .N = 1, .H = 1, .K = 1, .V = 1, .cancels = 4},
      {.B = 2, .T = 2, .N = 2, .H = 3, .K = 3, .V = 1, .gate = true},
      {.B = 1, .T = 63, .N = 3, .H = 2, .K = 16, .V = 3},
      {.B = 3, .T = 64, .N = 1, .H = 2, .K = 32, .V = 32, .gate = true, .state = false},
      {.B = 1, .T = 65, .N = 4, .H = 1, .K = 3, .V = 16, .gate = true},
      {.B = 1, .T = 129, .N = 2, .H = 1, .K = 16, .V = 64, .gate = true},
      {.B = 1, .T = 63, .N = 1, .H = 1, .K = 64, .V = 128, .state = false},
      {.B = 1, .T = 65, .N = 1, .H = 2, .K = 128, .V = 32, .gate = true, .q = false},
      {.B = 2, .T = 129, .N = 1, .H = 2, .K = 1, .V = 3, .q = false},
      {.B = 1, .T = 270, .N = 1, .H = 1, .K = 5, .V = 40, .gate = true},
      // dlog_gate is two numbers, sums of 64 products of either sign, behind 80 updates in a row.
      {.B = 1, .T = 2, .N = 40, .H = 1, .K = 8, .V = 8, .gate = true, .cancels = 4},
      {.B = 1, .T = 85, .N = 3, .H = 2, .K = 8, .V = 24, .gate = true},
      {.B = 1, .T = 23, .N = 2, .H = 2, .K = 4, .V = 20, .gate = true, .lengths = {5, 0, 17, 1}},
      {.B = 1, .T = 290, .N = 1, .H = 1, .K = 4, .V = 6, .lengths = {10, 260, 20}},
  };
}
inline std::vector<Case> and_more(std::vector<Case> cases, const std::vector<Case>& more) {
  cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

// Outputs and the gradients of <o, wo> + <state, ws> for fixed random wo, ws.
struct Everything {
  std::vector<std::pair<std::string, torch::Tensor>> tensors;
};

template <class Function> Everything everything(ops::DeltaProduct in, Function&& function) {
  std::vector<std::pair<std::string, torch::Tensor*>> leaves = {{"q", &in.q},
                                                                {"k", &in.k},
                                                                {"v", &in.v},
                                                                {"beta", &in.beta},
                                                                {"log_gate", &in.log_gate},
                                                                {"state", &in.state}};
  for (auto& [name, x] : leaves)
    if (x->defined()) *x = x->detach().clone(torch::MemoryFormat::Contiguous).requires_grad_();
  const ops::DeltaProductResult out = function(in);
  Everything all;
  torch::manual_seed(7);
  torch::Tensor loss = torch::zeros({}, torch::kFloat64);
  for (const auto& [name, x] : {std::pair{"o", out.o}, std::pair{"final state", out.state}}) {
    if (!x.defined()) continue;
    all.tensors.emplace_back(name, x.detach());
    loss = loss + (x.to(torch::kFloat64) * torch::randn(x.sizes(), torch::kFloat64)).sum();
  }
  if (loss.requires_grad()) loss.backward();
  for (auto& [name, x] : leaves)
    if (x->defined())
      all.tensors.emplace_back("d" + name, x->grad().defined() ? x->grad() : torch::zeros_like(*x));
  return all;
}

// The definition on the same numbers in double.
inline ops::DeltaProduct in_double(ops::DeltaProduct in) {
  for (torch::Tensor* x : {&in.q, &in.k, &in.v, &in.beta, &in.log_gate, &in.state})
    if (x->defined()) *x = x->to(torch::kFloat64);
  return in;
}

// With every key head in memory as often as heads read it.
inline ops::DeltaProduct repeated(ops::DeltaProduct in) {
  const int64_t group = in.v.size(3) / in.k.size(3);
  if (in.q.defined()) in.q = in.q.repeat_interleave(group, 2);
  in.k = in.k.repeat_interleave(group, 3);
  return in;
}

// Shared keys give the bits of repeated ones. Gradients of q and k are the sums over the heads that
// read them, in their order, of what each would have: rounded as it is, added up in float32.
inline void expect_bits_of_repeated(const Everything& shared, const Everything& every) {
  ASSERT_EQ(shared.tensors.size(), every.tensors.size());
  for (size_t i = 0; i < shared.tensors.size(); ++i) {
    const auto& [name, got] = shared.tensors[i];
    torch::Tensor want = every.tensors[i].second;
    if (name == "dq" || name == "dk") {
      const int64_t G = got.size(-2), group = want.size(-2) / G;
      const torch::Tensor heads = want.to(ops::wide(got.scalar_type())).unflatten(-2, {G, group});
      want = heads.select(-2, 0);
      for (int64_t h = 1; h < group; ++h) want = want + heads.select(-2, h);
      want = want.to(got.scalar_type());
    }
    EXPECT_TRUE(torch::equal(got, want)) << name;
  }
}

}  // namespace lrnn
