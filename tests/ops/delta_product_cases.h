#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "ops/delta_product/case.h"
#include "ops/torch.h"

// Random problems for the delta product, shared by its tests.
namespace lrnn {

using Case = ops::DeltaProductCase;
inline ops::DeltaProduct make_inputs(const Case& c) { return ops::make_delta_product(c, c.dtype); }

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
