#include <cstdio>
#include <ctime>

#include "base/error.h"
#include "bench/main.h"
#include "ops/every_op.h"
#include "ops/torch.h"

// Every op on the CPU against its definition, the plain loop in torch, on the cases of its case.h.
// It first agrees with the definition, results and all gradients; a disagreement ends the run.
// `x_definition` is the ratio per token: the definition of a recurrence is timed on 64 tokens,
// because on the full length its graph would not fit into memory. The runs named length show what
// a token costs as T grows. Both are counted in seconds of processor time, all threads together,
// so that whatever else the machine does is no part of them; on one thread (OMP_NUM_THREADS=1)
// nothing waits for another either. GFLOP/s count the multiply-adds of the recurrence, twice as
// many more in backward.
namespace lrnn {
namespace {

using ops::Ask;
using ops::CheckedOp;
using ops::Problem;
using torch::Tensor;

constexpr int64_t kDefinitionTokens = 64;

double processor_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

void step(const ops::Tensors& in, const ops::TensorFunction& function, bool backward) {
  if (!backward) {
    const torch::NoGradGuard no_grad;
    benchmark::DoNotOptimize(function(in));
    return;
  }
  ops::Tensors leaves = in;
  for (auto& [name, x] : leaves)
    if (x.is_floating_point()) x = x.detach().requires_grad_();
  std::vector<Tensor> roots, grads;
  for (const auto& [name, y] : function(leaves)) roots.push_back(y), grads.push_back(y.detach());
  torch::autograd::backward(roots, grads);
}

void agree(const CheckedOp& op) {
  for (const auto& ask : op.typical)
    if (!ops::agreement(ask.on(torch::kFloat32), torch::kCPU).within(op.tolerance.float32)) {
      std::fprintf(stderr, "%s and its definition disagree at %s\n", op.name.c_str(),
                   ask.shape.c_str());
      std::exit(1);
    }
}

double definition_per_token(const CheckedOp& op, const Ask& ask, bool backward) {
  const int64_t T = op.recurrent ? std::min(ask.T, kDefinitionTokens) : ask.T;
  const Problem problem = ask.problem(ask.B, T, ask.dtype);
  double best = 1e30;
  for (int i = 0; i < 3; ++i) {
    const double begin = processor_seconds();
    step(problem.in, problem.definition, backward);
    best = std::min(best, processor_seconds() - begin);
  }
  return best / double(ask.B * T);
}

void add(const std::string& name, const CheckedOp& op, const Ask& ask, bool compare) {
  for (const bool backward : {false, true})
    benchmark::RegisterBenchmark(
        (name + (backward ? "/forward+backward" : "/forward")).c_str(),
        [=](benchmark::State& state) {
          const Problem problem = ask.on(ask.dtype);
          step(problem.in, problem.kernel, backward);  // the first touch of memory is the system's
          const double begin = processor_seconds();
          for (auto _ : state) step(problem.in, problem.kernel, backward);
          const double seconds = processor_seconds() - begin;
          const double per_token = seconds / double(state.iterations()) / double(ask.B * ask.T);
          state.counters["ns/token"] = per_token * 1e9;
          state.counters["GFLOP/s"] = ask.flops_per_token * (backward ? 3 : 1) / per_token * 1e-9;
          if (compare)
            state.counters["x_definition"] = definition_per_token(op, ask, backward) / per_token;
        })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime()
        ->MinTime(0.2);
}

void add_all() {
  for (const auto& op : ops::every_op()) {
    if (op.timed.empty()) continue;
    agree(op);
    for (const auto& ask : op.timed) add(cat(op.name, "/", ask.shape), op, ask, true);
    if (!op.recurrent) continue;
    for (const int64_t T : {512, 2048, 8192, 32768}) {
      Ask longer = op.timed.back();
      longer.B = 1, longer.T = T;
      add(cat(op.name, "/length/T:", T), op, longer, false);
    }
  }
}

}  // namespace
}  // namespace lrnn

int main(int argc, char** argv) { return lrnn::bench_main(argc, argv, lrnn::add_all); }
