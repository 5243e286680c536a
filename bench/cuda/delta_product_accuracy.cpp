#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/cuda/problem.h"

// How right each kernel is where beta is 1 or 2: the relative error of the final state and of every
// gradient against the recurrence in float64 on the same bfloat16 inputs. B 2, H 4, no gate, a
// random initial state; keys as state tracking learns them.
namespace lrnn::bench {
namespace {

Tensor unit(const Tensor& x) { return x / x.norm(2, -1, true); }

Tensor keys(const std::string& kind, int64_t T, int64_t K) {
  const auto on = torch::TensorOptions(torch::kCUDA).dtype(torch::kFloat32);
  const int64_t B = 2, H = 4;
  const auto directions = [&](int64_t n, double noise) {
    const Tensor base = unit(torch::randn({B, 1, H, n, K}, on)).expand({B, T, H, n, K});
    const Tensor which = torch::randint(n, {B, T, H, 1, 1}, on.dtype(torch::kInt64));
    const Tensor k = base.gather(3, which.expand({B, T, H, 1, K})).squeeze(3);
    return unit(k + noise * unit(torch::randn({B, T, H, K}, on)));
  };
  Tensor k;
  if (kind == "random") k = unit(torch::randn({B, T, H, K}, on));
  if (kind == "4 directions + 2 %") k = directions(4, 0.02);
  if (kind == "3-dimensional")
    k = unit(torch::randn({B, T, H, 3}, on).unsqueeze(-2).matmul(torch::randn({B, 1, H, 3, K}, on)))
            .squeeze(-2);
  if (kind == "one direction + 1 %") k = directions(1, 0.01);
  return k.unsqueeze(2).to(torch::kBFloat16);  // [B,T,1,H,K]
}

void run(const std::string& kind, int64_t T, int64_t K, double beta, bool zero_v) {
  torch::manual_seed(3);
  const auto on = torch::TensorOptions(torch::kCUDA).dtype(torch::kFloat32);
  ops::DeltaProduct in;
  in.k = keys(kind, T, K);
  in.q = unit(torch::randn({2, T, 4, K}, on)).to(torch::kBFloat16);
  in.v = torch::randn({2, T, 1, 4, K}, on).to(torch::kBFloat16);
  if (zero_v) in.v.zero_();
  in.beta = torch::full({2, T, 1, 4}, beta, on);
  in.state = torch::randn({2, 4, K, K}, on);
  const Tensor d_o = torch::randn({2, T, 4, K}, on).to(torch::kBFloat16);
  const Tensor d_state = torch::randn({2, 4, K, K}, on);
  auto wide = in;
  for (Tensor* x : leaves(wide)) *x = x->to(torch::kFloat64);
  const auto want = with_gradients(wide, d_o.to(torch::kFloat64), d_state.to(torch::kFloat64));
  for (const std::string precision : {"fast", "accurate", "exact"}) {
    in.accuracy = precision;
    const auto got = with_gradients(in, d_o, d_state);
    nlohmann::ordered_json line = {
        {"keys", kind},          {"T", T}, {"K", K}, {"beta", beta}, {"v", zero_v ? "0" : "random"},
        {"precision", precision}};
    const char* names[] = {"o", "S", "dq", "dk", "dv", "dbeta", "dS0"};
    for (size_t i = 0; i < got.size(); ++i) {
      char text[32];
      std::snprintf(text, sizeof text, "%.1e", relative_error(got[i], want[i]));
      line[names[i]] = text;
    }
    std::puts(line.dump().c_str());
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace lrnn::bench

int main() {
  if (!lrnn::bench::has_gpu()) return 0;
  for (const char* kind : {"random", "4 directions + 2 %", "3-dimensional", "one direction + 1 %"})
    for (const int64_t T : {512, 4096})
      for (const int64_t K : {32, 128}) {
        lrnn::bench::run(kind, T, K, 1, false);
        lrnn::bench::run(kind, T, K, 2, true);
        lrnn::bench::run(kind, T, K, 2, false);
      }
  return 0;
}
