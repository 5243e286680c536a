// The update of the parity model's 529,856 parameters, in as many tensors as it has: ours over one
// flat buffer beside torch's.
#include <benchmark/benchmark.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>

#include "ops/torch.h"
#include "training/adamw.h"

namespace {

using namespace lrnn;

struct Net : torch::nn::Module {
  Net() {
    for (int i = 0; i < 30; ++i) register_parameter("p" + std::to_string(i), torch::randn({17662}));
  }
};

void flat(benchmark::State& state) {
  Net net;
  training::AdamW optimiser(net, {}, [](const std::string&) { return true; });
  for (auto& p : net.parameters()) p.mutable_grad().normal_();
  for (auto _ : state) optimiser.step(1e-3, training::AdamW::clip(optimiser.grad_norm(), 1));
}
BENCHMARK(flat)->Name("adamw/flat")->Unit(benchmark::kMicrosecond)->UseRealTime();

void by_torch(benchmark::State& state) {
  Net net;
  torch::optim::AdamW optimiser(net.parameters(), 1e-3);
  for (auto& p : net.parameters()) p.mutable_grad() = torch::randn_like(p);
  for (auto _ : state) {
    torch::nn::utils::clip_grad_norm_(net.parameters(), 1);
    optimiser.step();
  }
}
BENCHMARK(by_torch)->Name("adamw/torch")->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
