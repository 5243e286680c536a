// The fused row-wise ops against their definitions, forward and backward: agree first, then time.
#include <benchmark/benchmark.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>

#include <cstdio>

#include "ops/norm/norm.h"
#include "ops/short_conv/short_conv.h"
#include "ops/swiglu/swiglu.h"
#include "ops/torch.h"
#include "training/adamw.h"

namespace {

using namespace lrnn;
using torch::Tensor;
using Inputs = std::vector<Tensor>;
using Function = std::function<Tensor(const Inputs&)>;

struct Pair {
  std::string name;
  Inputs inputs;
  Function fused, definition;
  double passes;  // over memory, of the size of the output, at the least
};

Tensor leaf(at::IntArrayRef size) { return torch::randn(size).requires_grad_(); }

// Tokens of the parity model in one batch of packed sequences, and of the demo's.
std::vector<Pair> pairs(int64_t rows, int64_t width, int64_t head, int64_t hidden) {
  const auto conv = [](auto f) {
    return [f](const Inputs& in) {
      ops::ShortConv a;
      a.x = in[0], a.weight = in[1];
      return f(a).y;
    };
  };
  return {
      {"rms_norm",
       {leaf({rows, width}), leaf({width})},
       [](const Inputs& in) { return ops::rms_norm(in[0], in[1], 1e-6); },
       [](const Inputs& in) { return ops::rms_norm_definition(in[0], in[1], 1e-6); },
       5},
      {"rms_norm_heads",
       {leaf({rows, width / head, head}), leaf({head})},
       [](const Inputs& in) { return ops::rms_norm(in[0], in[1], 1e-6); },
       [](const Inputs& in) { return ops::rms_norm_definition(in[0], in[1], 1e-6); },
       5},
      {"l2_norm_heads",
       {leaf({rows, width / head, head})},
       [](const Inputs& in) { return ops::l2_norm(in[0], 1e-6); },
       [](const Inputs& in) { return ops::l2_norm_definition(in[0], 1e-6); },
       5},
      {"swiglu",
       {leaf({rows, hidden}), leaf({rows, hidden})},
       [](const Inputs& in) { return ops::swiglu(in[0], in[1]); },
       [](const Inputs& in) { return ops::swiglu_definition(in[0], in[1]); },
       8},
      {"swiglu_halves",
       {leaf({rows, 2 * hidden})},
       [](const Inputs& in) { return ops::swiglu(in[0]); },
       [](const Inputs& in) {
         const auto halves = in[0].chunk(2, -1);
         return ops::swiglu_definition(halves[0], halves[1]);
       },
       8},
      {"short_conv",
       {leaf({1, rows, width}), leaf({width, 1, 4})},
       conv(ops::short_conv),
       conv(ops::short_conv_definition),
       5},
  };
}

Inputs run(const Function& f, const Inputs& in, const Tensor& dy) {
  const Tensor y = f(in);
  Inputs all = torch::autograd::grad({y}, in, {dy});
  all.push_back(y);
  return all;
}

bool agree(const Pair& p, const Tensor& dy) {
  const auto got = run(p.fused, p.inputs, dy), want = run(p.definition, p.inputs, dy);
  for (size_t i = 0; i < got.size(); ++i)
    if (!((got[i] - want[i]).norm().item<double>() <= 1e-4 * want[i].norm().item<double>()))
      return false;
  return true;
}

void time(const std::string& name, const Function& f, const Pair& p, const Tensor& dy) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 for (auto _ : state)
                                   benchmark::DoNotOptimize(run(f, p.inputs, dy));
                                 state.counters["GB/s"] = benchmark::Counter(
                                     4e-9 * p.passes * double(dy.numel()),
                                     benchmark::Counter::kIsIterationInvariantRate);
                               })
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
}

// The update of the parity model's 529,856 parameters, in as many tensors as it has.
void time_adamw() {
  struct Net : torch::nn::Module {
    Net() {
      for (int i = 0; i < 30; ++i)
        register_parameter("p" + std::to_string(i), torch::randn({17662}));
    }
  };
  benchmark::RegisterBenchmark(
      "adamw/flat",
      [](benchmark::State& state) {
        Net net;
        training::AdamW optimiser(net, {}, [](const std::string&) { return true; });
        for (auto& p : net.parameters()) p.mutable_grad().normal_();
        for (auto _ : state) optimiser.step(1e-3, training::AdamW::clip(optimiser.grad_norm(), 1));
      })
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
  benchmark::RegisterBenchmark("adamw/torch",
                               [](benchmark::State& state) {
                                 Net net;
                                 torch::optim::AdamW optimiser(net.parameters(), 1e-3);
                                 for (auto& p : net.parameters())
                                   p.mutable_grad() = torch::randn_like(p);
                                 for (auto _ : state) {
                                   torch::nn::utils::clip_grad_norm_(net.parameters(), 1);
                                   optimiser.step();
                                 }
                               })
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  torch::manual_seed(0);
  const std::vector<std::pair<std::string, std::vector<Pair>>> sizes = {
      {"parity", pairs(5248, 128, 32, 512)}, {"demo", pairs(650, 32, 16, 32)}};
  for (const auto& [size, all] : sizes)
    for (const auto& p : all) {
      const Tensor dy = torch::randn_like(p.fused(p.inputs));
      if (!agree(p, dy)) {
        std::fprintf(stderr, "%s/%s: fused and definition disagree\n", size.c_str(),
                     p.name.c_str());
        return 1;
      }
      time(size + "/" + p.name + "/fused", p.fused, p, dy);
      time(size + "/" + p.name + "/definition", p.definition, p, dy);
    }
  time_adamw();
  benchmark::RunSpecifiedBenchmarks();
}
