#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <functional>

#include "base/error.h"
#include "ops/mlstm.h"
#include "ops/slstm.h"
#include "ops/torch.h"
#include "training/memory.h"

// The two cells of xLSTM on the CPU. Every shape first agrees with the definition, outputs and all
// gradients; a disagreement ends the run. `x_definition` is the ratio per token to the definition,
// a plain torch loop, timed on 64 tokens right after.
namespace lrnn {
namespace {

using Clock = std::chrono::steady_clock;
using torch::Tensor;
using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

constexpr int64_t kDefinitionTokens = 64;

struct Shape {
  int64_t B, T, H, D;
};

struct Cell {
  const char* name;
  std::function<Tensors(const Shape&)> inputs;
  Function kernel, definition;
};

Tensors mlstm_inputs(const Shape& s) {
  torch::manual_seed(1);
  const auto row = [&] { return torch::randn({s.B, s.T, s.H, s.D}); };
  return {row(), row(), row(), torch::randn({s.B, s.T, s.H}), 3 + torch::randn({s.B, s.T, s.H})};
}
Tensors slstm_inputs(const Shape& s) {
  torch::manual_seed(1);
  return {torch::randn({s.B, s.T, s.H, 4, s.D}),
          torch::randn({s.H, s.D, 4, s.D}) / std::sqrt(double(s.D)), torch::randn({s.H, 4, s.D})};
}

template <auto cell> Tensors mlstm_with(const Tensors& x) {
  const auto out = cell({.q = x[0],
                         .k = x[1],
                         .v = x[2],
                         .i = x[3],
                         .f = x[4],
                         .state = {},
                         .scale = {},
                         .cu_seqlens = {}});
  return {out.h, out.state.C, out.state.n, out.state.m};
}
template <auto cell> Tensors slstm_with(const Tensors& x) {
  const auto out = cell({.wx = x[0], .R = x[1], .bias = x[2], .state = {}, .cu_seqlens = {}});
  return {out.h, out.state};
}

Tensors step(const Tensors& in, bool backward, const Function& function) {
  if (!backward) {
    const torch::NoGradGuard no_grad;
    return function(in);
  }
  Tensors leaves;
  for (const auto& x : in) leaves.push_back(x.detach().requires_grad_());
  Tensors out = function(leaves);
  Tensors grads;
  for (const auto& y : out) grads.push_back(y.detach());
  torch::autograd::backward(out, grads);
  for (const auto& x : leaves) out.push_back(x.grad());
  return out;
}

void agree(const Cell& cell, Shape s) {
  s.B = 2, s.T = kDefinitionTokens + 9;
  const Tensors in = cell.inputs(s);
  Tensors in_double;
  for (const auto& x : in) in_double.push_back(x.to(torch::kFloat64));
  const Tensors got = step(in, true, cell.kernel), want = step(in_double, true, cell.definition);
  for (size_t i = 0; i < got.size(); ++i) {
    const double error =
        ((got[i].detach() - want[i].detach()).norm() / want[i].detach().norm()).item<double>();
    if (error <= 1e-3) continue;
    std::fprintf(stderr, "%s and its definition disagree in result %zu by %g\n", cell.name, i,
                 error);
    std::exit(1);
  }
}

double definition_per_token(const Cell& cell, Shape s, bool backward) {
  s.T = kDefinitionTokens;
  const Tensors in = cell.inputs(s);
  double best = 1e30;
  for (int i = 0; i < 3; ++i) {
    const auto begin = Clock::now();
    benchmark::DoNotOptimize(step(in, backward, cell.definition));
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best / double(s.B * s.T);
}

void add(const Cell& cell, const Shape& s, bool compare) {
  for (const bool backward : {false, true})
    benchmark::RegisterBenchmark(
        cat(cell.name, "/", s.B, "x", s.T, "x", s.H, "x", s.D,
            backward ? "/forward+backward" : "/forward")
            .c_str(),
        [=](benchmark::State& state) {
          const Tensors in = cell.inputs(s);
          const auto begin = Clock::now();
          for (auto _ : state) benchmark::DoNotOptimize(step(in, backward, cell.kernel));
          const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
          const double per_token = seconds / double(state.iterations()) / double(s.B * s.T);
          state.counters["ns/token"] = per_token * 1e9;
          if (compare)
            state.counters["x_definition"] = definition_per_token(cell, s, backward) / per_token;
        })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime()
        ->MinTime(0.2);
}

void add_all() {
  const Cell cells[] = {
      {"slstm", slstm_inputs, slstm_with<ops::slstm>, slstm_with<ops::slstm_definition>},
      {"mlstm", mlstm_inputs, mlstm_with<ops::mlstm>, mlstm_with<ops::mlstm_definition>}};
  for (const auto& cell : cells) {
    const int64_t D = cell.name[0] == 's' ? 32 : 64;  // as in the published models of width 128
    agree(cell, {.B = 2, .T = 0, .H = 2, .D = D});
    for (const int64_t B : {1, 8, 64}) add(cell, {B, 256, 4, D}, true);
    for (const int64_t T : {512, 2048, 8192, 32768}) add(cell, {1, T, 4, D}, false);
  }
}

}  // namespace
}  // namespace lrnn

int main(int argc, char** argv) {
  lrnn::training::reuse_memory();  // as the program does
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  lrnn::add_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
