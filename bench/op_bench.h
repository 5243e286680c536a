#pragma once
#include <benchmark/benchmark.h>

#include <cstdio>
#include <ctime>
#include <functional>
#include <vector>

#include "base/error.h"
#include "ops/torch.h"

// An op on the CPU against its definition, the plain loop in torch. It first agrees with the
// definition, outputs and all gradients; a disagreement ends the run. `x_definition` is the ratio
// per token: the definition is timed on 64 tokens, because on the full length its graph would not
// fit into memory. The runs named length show what a token costs as T grows. Both are counted in
// seconds of processor time, all threads together, so that whatever else the machine does is no
// part of them.
namespace lrnn {

using Tensors = std::vector<torch::Tensor>;
using OpFunction = std::function<Tensors(const Tensors&)>;

struct OpBench {
  std::string name;
  int64_t batch, length;
  std::function<Tensors(int64_t batch, int64_t T)> inputs;  // all want gradients
  OpFunction op, definition;
};

namespace op_bench {

inline double processor_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }
constexpr int64_t kDefinitionTokens = 64;

inline Tensors step(const Tensors& inputs, const OpFunction& function, bool backward) {
  if (!backward) {
    const torch::NoGradGuard no_grad;
    return function(inputs);
  }
  Tensors leaves, grads;
  for (const auto& x : inputs) leaves.push_back(x.detach().requires_grad_());
  Tensors out = function(leaves);
  for (const auto& y : out) grads.push_back(y.detach());
  torch::autograd::backward(out, grads);
  for (const auto& x : leaves) out.push_back(x.grad());
  return out;
}

inline void agree(const OpBench& bench) {
  const Tensors in = bench.inputs(1, kDefinitionTokens + 1);
  Tensors in_double;
  for (const auto& x : in) in_double.push_back(x.to(torch::kFloat64));
  const Tensors got = step(in, bench.op, true), want = step(in_double, bench.definition, true);
  for (size_t i = 0; i < got.size(); ++i) {
    const auto reference = want[i].detach();
    const double error =
        ((got[i].detach().to(torch::kFloat64) - reference).norm() / reference.norm())
            .item<double>();
    if (error <= 1e-4) continue;
    std::fprintf(stderr, "%s and its definition disagree in tensor %zu by %g\n", bench.name.c_str(),
                 i, error);
    std::exit(1);
  }
}

inline double definition_per_token(const OpBench& bench, bool backward) {
  const Tensors in = bench.inputs(bench.batch, kDefinitionTokens);
  double best = 1e30;
  for (int i = 0; i < 3; ++i) {
    const double begin = processor_seconds();
    step(in, bench.definition, backward);
    best = std::min(best, processor_seconds() - begin);
  }
  return best / double(bench.batch * kDefinitionTokens);
}

inline void add(const std::string& name, const OpBench& bench, int64_t batch, int64_t T,
                bool compare) {
  for (const bool backward : {false, true})
    benchmark::RegisterBenchmark(
        (name + (backward ? "/forward+backward" : "/forward")).c_str(),
        [=](benchmark::State& state) {
          const Tensors in = bench.inputs(batch, T);
          step(in, bench.op, backward);
          const double begin = processor_seconds();
          for (auto _ : state) benchmark::DoNotOptimize(step(in, bench.op, backward));
          const double seconds = processor_seconds() - begin;
          const double per_token = seconds / double(state.iterations()) / double(batch * T);
          state.counters["ns/token"] = per_token * 1e9;
          if (compare)
            state.counters["x_definition"] = definition_per_token(bench, backward) / per_token;
        })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime()
        ->MinTime(0.2);
}

}  // namespace op_bench

inline void add_op_bench(const OpBench& bench) {
  op_bench::agree(bench);
  op_bench::add(bench.name, bench, bench.batch, bench.length, true);
  for (const int64_t T : {512, 2048, 8192, 32768})
    op_bench::add(cat(bench.name, "/length/T:", T), bench, 1, T, false);
}

}  // namespace lrnn
