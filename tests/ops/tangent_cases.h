#pragma once
#include "ops/delta_product/delta_product.h"
#include "ops/gated_mlp/gated_mlp.h"
#include "ops/join/join.h"
#include "ops/linears/linears.h"
#include "ops/norm/norm.h"
#include "ops/read_at/read_at.h"
#include "ops/short_conv/short_conv.h"
#include "ops/take/take.h"
#include "ops/wide_sigmoid/wide_sigmoid.h"
#include "tests/tangent.h"

// The ops that only C++ sees (tests/scripts/tangents_from_python.py has the others), with inputs in
// float64 on the CPU.
namespace lrnn {

struct TangentCase {
  std::string name;
  TensorFunction f;
  TensorVector inputs;
};

inline TensorVector pair_of(const std::pair<torch::Tensor, torch::Tensor>& x) {
  return {x.first, x.second};
}

inline std::vector<TangentCase> tangent_cases() {
  using namespace ops;
  torch::manual_seed(5);
  const auto random = [](at::IntArrayRef shape) { return torch::randn(shape, torch::kFloat64); };
  const auto unit = [](const TensorVector& x, const torch::Tensor& state) {
    auto out = unit_conv({.x = x[0],
                          .weight = x[1],
                          .state = state,
                          .sizes = {8, 8, 4},
                          .units = 16,
                          .group = 4,
                          .eps = 1e-3});
    out.y.push_back(out.state);
    return out.y;
  };
  // Sizes for which a GPU has kernels of ours.
  return {
      {"linears",
       [](auto& x) {
         return linears(x[0], {x[1], x[2]});
       },
       {random({3, 5, 16}), random({4, 16}), random({24, 16})}},
      {"linears side by side",
       [](auto& x) {
         return linears(x[0], {x[1].narrow(0, 0, 8), x[1].narrow(0, 8, 16)});
       },
       {random({6, 16}), random({24, 16})}},
      {"linear",
       [](auto& x) { return TensorVector{ops::linear(x[0], x[1])}; },
       {random({6, 16}), random({9, 16})}},
      {"join",
       [](auto& x) {
         return TensorVector{join({{x[0], x[1]}, {}})};
       },
       {random({2, 3}), random({4, 3})}},
      {"linear of a stack",
       [](auto& x) {
         return TensorVector{ops::linear(x[0], WeightStack{{x[1], x[2]}, {}, {}})};
       },
       {random({6, 16}), random({8, 16}), random({16, 16})}},
      {"split",
       [](auto& x) {
         return ops::split(x[0], {2, 3}, 1);
       },
       {random({3, 5})}},
      {"take",
       [](auto& x) {
         return take({x[0], x[1]}, torch::tensor({{2, 0, -1}, {2, 3, 1}}));
       },
       {random({4, 3}), random({4, 2, 5})}},
      {"pick",
       [](auto& x) {
         return TensorVector{
             pick(x[0], torch::tensor({3, 0}, x[0].options().dtype(torch::kInt64)))};
       },
       {random({4, 3})}},
      {"read_state",
       [](auto& x) { return TensorVector{read_state(x[0], x[1], 0.3)}; },
       {random({3, 2, 4}), random({3, 2, 4, 5})}},
      {"wide_sigmoid",
       [](auto& x) { return TensorVector{wide_sigmoid(x[0], 2)}; },
       {random({3, 5})}},
      {"unit_conv", [=](auto& x) { return unit(x, {}); }, {random({2, 6, 20}), random({20, 1, 4})}},
      {"unit_conv after a state",
       [=, past = random({2, 20, 4})](auto& x) { return unit(x, past.to(x[0].options())); },
       {random({2, 6, 20}), random({20, 1, 4})}},
      {"add_norm",
       [](auto& x) { return pair_of(add_norm(x[0], x[1], x[2], 1e-3, false)); },
       {random({3, 4, 16}), random({3, 4, 16}), random({16})}},
      {"norm alone",
       [](auto& x) { return pair_of(add_norm(x[0], {}, x[1], 1e-3, false)); },
       {random({3, 16}), random({16})}},
      {"block_linear",
       [](auto& x) { return TensorVector{block_linear(x[0], x[1])}; },
       {random({3, 5, 8}), random({2, 4, 4})}},
      {"gated_mlp",
       [](auto& x) { return TensorVector{gated_mlp(x[0], x[1], x[2], x[3])}; },
       {random({5, 8}), random({16, 8}), random({16, 8}), random({8, 16})}},
      {"delta_product without outputs",
       [](auto& x) {
         return TensorVector{delta_product({.q = {},
                                            .k = x[0],
                                            .v = x[1],
                                            .beta = x[2],
                                            .log_gate = {},
                                            .state = {},
                                            .scale = {},
                                            .cu_seqlens = {}})
                                 .state};
       },
       {l2_norm_definition(random({2, 5, 2, 2, 3}), 0), random({2, 5, 2, 2, 4}),
        torch::rand({2, 5, 2, 2}, torch::kFloat64)}},
  };
}

}  // namespace lrnn
