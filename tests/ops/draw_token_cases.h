#pragma once
#include <limits>

#include "ops/draw_token/draw_token.h"
#include "ops/torch.h"

namespace lrnn::ops {

// Calls test(logits, u, how): vocabularies of all kinds of sizes, logits that lie apart, close
// together, on each other, and infinitely far down.
template <class Test> void for_draws(Test&& test) {
  torch::manual_seed(5);
  const std::vector<Drawing> ways = {
      {1, 0, 1},           {.temperature = 0},
      {.temperature = .6}, {.temperature = 1.5, .top_k = 5},
      {.top_k = 1},        {.top_p = .5},
      {.top_p = 1e-9},     {.temperature = 2, .top_k = 50, .top_p = .9}};
  for (const int64_t V : {1, 2, 31, 300, 1025, 5000})
    for (const double spread : {3., .2, 0.}) {
      torch::Tensor logits = spread * torch::randn({7, V});
      logits[1] = logits[1].round();
      logits[2].fill_(-7).select(0, V / 2).fill_(50);
      if (V > 2) logits[3].narrow(0, 1, V / 2).fill_(-std::numeric_limits<float>::infinity());
      logits = logits.to(V % 2 ? torch::kBFloat16 : torch::kFloat32);
      torch::Tensor u = torch::rand(7, torch::kFloat64);
      u[4] = 0, u[5] = 1 - 1e-6;  // kernels round what lies beyond
      for (const auto& how : ways) test(logits, u, how);
    }
}

}  // namespace lrnn::ops
