#include <algorithm>

#include "tests/cuda/delta_product_cuda_cases.h"

// S_5 in one layer, as the CPU's golden test has it, but with keys e_a - e_b and beta = 1: every
// number on the way is a small integer, so every kernel must be exact, however long.
namespace lrnn {
namespace {

using torch::Tensor;
struct DeltaProductTrackerOnGpu : OnGpu {};

struct Walk {
  Tensor k, beta, want;  // [1,T,N,1,K], [1,T,N,1], [T,5]
};

Walk random_walk(int64_t T) {
  constexpr int64_t n = 5, N = 4, K = 8;
  Walk w{torch::zeros({1, T, N, 1, K}), torch::zeros({1, T, N, 1}), torch::empty({T, n})};
  auto at_k = w.k.accessor<float, 5>();
  auto at_beta = w.beta.accessor<float, 4>();
  auto at_want = w.want.accessor<float, 2>();
  int64_t y[n] = {0, 1, 2, 3, 4};
  uint64_t random = 1;
  for (int64_t t = 0; t < T; ++t) {
    int64_t x[n] = {0, 1, 2, 3, 4}, product[n], inverse[n];
    for (int64_t i = n - 1; i > 0; --i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      std::swap(x[i], x[(random >> 33) % uint64_t(i + 1)]);
    }
    for (int64_t i = 0; i < n; ++i) product[i] = y[x[i]], inverse[x[i]] = i;
    std::copy(product, product + n, y);
    for (int64_t i = 0; i < n; ++i) at_want[t][i] = float(y[i] + 1);
    bool seen[n] = {};
    for (int64_t c = 0, j = 0; c < n; ++c)
      for (int64_t b = inverse[c]; !seen[c] && b != c; b = inverse[b], ++j) {
        seen[b] = true;
        at_k[0][t][j][0][c] = 1, at_k[0][t][j][0][b] = -1;
        at_beta[0][t][j][0] = 1;
      }
  }
  return w;
}

TEST_F(DeltaProductTrackerOnGpu, IsExactForAMillionTokens) {
  constexpr int64_t T = 1000000, n = 5, K = 8, V = 16;
  const Walk walk = random_walk(T);
  const auto heads = [&](const Tensor& x) {  // one head per entry of the state
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes[3] = n;
    return x.to(torch::kCUDA).expand(sizes);
  };
  Tensor state = torch::zeros({1, n, K, V});
  state.slice(2, 0, n).copy_(
      torch::arange(1, n + 1, torch::kFloat32).view({1, 1, n, 1}).expand({1, n, n, V}));
  const Tensor q = torch::eye(n, K).view({1, 1, n, K}).expand({1, T, n, K});
  for (const char* precision : {"exact", "accurate", "fast"}) {
    const auto out =
        ops::delta_product({.q = q.to(torch::kCUDA, torch::kBFloat16),
                            .k = heads(walk.k).to(torch::kBFloat16),
                            .v = torch::zeros({1, T, 4, n, V}, torch::kBFloat16).to(torch::kCUDA),
                            .beta = heads(walk.beta).contiguous(),
                            .log_gate = {},
                            .state = state.to(torch::kCUDA),
                            .scale = 1.0,
                            .cu_seqlens = {},
                            .accuracy = precision});
    EXPECT_TRUE(
        torch::equal(out.o.select(-1, 0).view({T, n}).to(torch::kCPU, torch::kFloat32), walk.want))
        << precision;
  }
}

}  // namespace
}  // namespace lrnn
