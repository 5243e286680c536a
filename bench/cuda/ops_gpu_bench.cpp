#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "bench/cuda/problem.h"
#include "ops/gated_linear_attention.h"
#include "ops/mlstm.h"
#include "ops/pointwise.h"
#include "ops/rwkv7.h"
#include "ops/selective_scan.h"
#include "ops/slstm.h"
#include "ops/take.h"

// The other ops on the GPU, one JSON line per op and shape: median milliseconds of replayed graphs,
// which also shows that every op can be recorded. Forward alone keeps nothing for backward;
// backward is what forward with backward takes more than a forward that keeps what backward needs.
namespace lrnn::bench {
namespace {

using Tensors = std::vector<Tensor>;
using Op = std::function<Tensors(const Tensors&)>;

auto on(torch::Dtype dtype) { return torch::TensorOptions(torch::kCUDA).dtype(dtype); }

Tensor normal(std::vector<int64_t> sizes, torch::Dtype dtype) {
  return torch::randn(sizes, on(torch::kFloat32)).to(dtype);
}

void run(const std::string& name, const std::string& shape, const Tensors& inputs, const Op& op) {
  Tensors leaves, given;
  for (const Tensor& x : inputs)
    leaves.push_back(x.is_floating_point() ? x.detach().requires_grad_() : x);
  const Tensors wanted = [&] {
    Tensors out;
    for (const Tensor& x : leaves)
      if (x.requires_grad()) out.push_back(x);
    return out;
  }();
  double bytes = 0;
  {
    const torch::NoGradGuard no_grad;
    const Tensor y = op(inputs)[0];
    given = {torch::randn_like(y)};
    for (const Tensor& x : inputs) bytes += double(x.nbytes());
    bytes += double(y.nbytes());
  }
  const double forward = graph_time_of([&] {
    const torch::NoGradGuard no_grad;
    op(inputs);
  });
  const double keeping = graph_time_of([&] { op(leaves); }, 15);
  const double both = graph_time_of(
      [&] { torch::autograd::grad({op(leaves)[0]}, wanted, given, false, false, true); }, 15);
  const nlohmann::ordered_json line = {{"op", name},
                                       {"shape", shape},
                                       {"forward_ms", forward},
                                       {"keeping_ms", keeping},
                                       {"backward_ms", both - keeping},
                                       {"both_ms", both},
                                       {"forward_gb_per_s", bytes / forward / 1e6}};
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

void scan(int64_t B, int64_t T, int64_t D, int64_t N, bool gate, bool negative) {
  const auto dtype = torch::kBFloat16;
  Tensors in = {normal({B, T, D}, dtype),
                normal({B, T, D}, dtype),
                -(2 * torch::rand({D, N}, on(torch::kFloat32))).exp(),
                normal({B, T, N}, dtype),
                normal({B, T, N}, dtype),
                normal({D}, torch::kFloat32),
                normal({D}, torch::kFloat32)};
  if (gate) in.push_back(normal({B, T, D}, dtype));
  run("selective_scan", cat(B, ",", T, ",", D, ",", N, gate ? " z" : "", negative ? " [-1,1]" : ""),
      in, [=](const Tensors& x) -> Tensors {
        ops::SelectiveScan s;
        s.u = x[0], s.delta = x[1], s.A = x[2], s.B = x[3], s.C = x[4], s.D = x[5];
        s.delta_bias = x[6], s.negative = negative;
        if (gate) s.z = x[7];
        return {ops::selective_scan(s).y};
      });
}

void diagonal(bool rwkv7, int64_t B, int64_t T, int64_t H, int64_t K, int64_t V) {
  const auto dtype = torch::kBFloat16;
  Tensors in = {normal({B, T, H, K}, dtype), normal({B, T, H, K}, dtype),
                normal({B, T, H, V}, dtype), -0.5 * torch::rand({B, T, H, K}, on(torch::kFloat32))};
  if (rwkv7) {
    in.push_back(unit(normal({B, T, H, K}, torch::kFloat32)).to(dtype));
    in.push_back(torch::rand({B, T, H, K}, on(torch::kFloat32)).to(dtype));
  }
  run(rwkv7 ? "rwkv7" : "gated_linear_attention", cat(B, ",", T, ",", H, ",", K, ",", V), in,
      [=](const Tensors& x) -> Tensors {
        if (rwkv7)
          return {ops::rwkv7({.r = x[0],
                              .log_w = x[3],
                              .k = x[1],
                              .v = x[2],
                              .kk = x[4],
                              .a = x[5],
                              .state = {},
                              .scale = 1,
                              .cu_seqlens = {}})
                      .o};
        return {ops::gated_linear_attention({.q = x[0],
                                             .k = x[1],
                                             .v = x[2],
                                             .log_gate = x[3],
                                             .state = {},
                                             .scale = {},
                                             .negative = false,
                                             .cu_seqlens = {}})
                    .o};
      });
}

void lstms(int64_t B, int64_t T, int64_t H, int64_t D) {
  const auto dtype = torch::kBFloat16;
  const std::string shape = cat(B, ",", T, ",", H, ",", D);
  run("slstm", shape,
      {normal({B, T, H, 4, D}, dtype), normal({H, D, 4, D}, torch::kFloat32) / double(D),
       normal({H, 4, D}, torch::kFloat32)},
      [](const Tensors& x) -> Tensors {
        return {ops::slstm({.wx = x[0], .R = x[1], .bias = x[2], .state = {}, .cu_seqlens = {}}).h};
      });
  run("mlstm", shape,
      {normal({B, T, H, D}, dtype), normal({B, T, H, D}, dtype), normal({B, T, H, D}, dtype),
       normal({B, T, H}, torch::kFloat32), normal({B, T, H}, torch::kFloat32) + 4},
      [](const Tensors& x) -> Tensors {
        return {ops::mlstm({.q = x[0],
                            .k = x[1],
                            .v = x[2],
                            .i = x[3],
                            .f = x[4],
                            .state = {},
                            .scale = {},
                            .cu_seqlens = {}})
                    .h};
      });
}

void rows(int64_t n, int64_t D, torch::Dtype dtype) {
  const std::string shape = cat(n, ",", D, dtype == torch::kBFloat16 ? " bf16" : " fp32");
  run("rms_norm", shape, {normal({n, D}, dtype), normal({D}, torch::kFloat32)},
      [](const Tensors& x) -> Tensors { return {ops::rms_norm(x[0], x[1], 1e-6)}; });
  run("l2_norm", shape, {normal({n, D}, dtype)},
      [](const Tensors& x) -> Tensors { return {ops::l2_norm(x[0], 1e-6)}; });
  run("swiglu", shape, {normal({n, D}, dtype), normal({n, D}, dtype)},
      [](const Tensors& x) -> Tensors { return {ops::swiglu(x[0], x[1])}; });
  for (const int64_t table : {8, 4096}) {
    const Tensor index = torch::randint(table, {n}, on(torch::kInt64));
    run("take", cat(shape, " of ", table), {normal({table, D}, dtype), index},
        [](const Tensors& x) -> Tensors { return ops::take({x[0]}, x[1]); });
  }
}

}  // namespace
}  // namespace lrnn::bench

int main() {
  using namespace lrnn::bench;
  if (!at::globalContext().hasCUDA()) return std::puts("{\"skipped\": \"no GPU was found\"}"), 0;
  torch::manual_seed(1);
  scan(8, 2048, 4096, 16, false, false);
  scan(8, 2048, 4096, 16, true, false);
  scan(8, 2048, 4096, 16, true, true);
  scan(256, 64, 256, 16, true, true);
  diagonal(false, 8, 2048, 16, 64, 64);
  diagonal(false, 8, 2048, 8, 128, 128);
  diagonal(false, 256, 64, 4, 16, 32);
  diagonal(true, 8, 2048, 16, 64, 64);
  diagonal(true, 256, 64, 4, 32, 32);
  lstms(8, 1024, 4, 64);
  lstms(256, 64, 4, 32);
  rows(65536, 1024, torch::kBFloat16);
  rows(16384, 128, torch::kFloat32);
  return 0;
}
