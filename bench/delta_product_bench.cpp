#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <random>

#include "base/error.h"
#include "bench/op_bench.h"
#include "kernels/delta_product.h"
#include "ops/delta_product/delta_product.h"
#include "ops/torch.h"
#include "tests/ops/delta_product_cases.h"
#include "training/memory.h"

// The delta product on the CPU. Every shape first agrees with the definition, outputs and all
// gradients; a disagreement ends the run. `x_definition` is the ratio per token: the definition is
// timed on 64 tokens, because on the full length its graph would not fit into memory. Both are
// counted in seconds of processor time, all threads together, so that whatever else the machine
// does is no part of them; on one thread (OMP_NUM_THREADS=1) nothing waits for another either.
// GFLOP/s count the state's multiply-adds, 4NKV + 2KV forward and 10NKV + 4KV backward per token
// and head, and not the chunk products; gemm_1024 is what one large product reaches in the same
// seconds.
namespace lrnn {
namespace {

using op_bench::kDefinitionTokens;
using op_bench::processor_seconds;
using torch::Tensor;

struct Shape {
  int64_t B, T, H, K, V;
};

template <class Function> void step(ops::DeltaProduct in, bool backward, Function&& function) {
  if (!backward) {
    torch::NoGradGuard no_grad;
    benchmark::DoNotOptimize(function(in).state);
    return;
  }
  for (Tensor* x : {&in.q, &in.k, &in.v, &in.beta, &in.log_gate, &in.state})
    if (x->defined()) *x = x->detach().requires_grad_();
  const auto out = function(in);
  std::vector<Tensor> roots = {out.state}, grads = {out.state.detach()};
  if (out.o.defined()) roots.push_back(out.o), grads.push_back(out.o.detach());
  torch::autograd::backward(roots, grads);
}

double definition_per_token(Case c, bool backward) {
  c.T = kDefinitionTokens;
  const auto in = make_inputs(c);
  double best = 1e30;
  for (int i = 0; i < 2; ++i) {
    const double begin = processor_seconds();
    step(in, backward, ops::delta_product_definition);
    best = std::min(best, processor_seconds() - begin);
  }
  return best / double(c.B * c.T);
}

void agree(Case c) {
  if (c.lengths.empty()) c.B = 1, c.H = 2, c.T = kDefinitionTokens + 1;
  const auto in = make_inputs(c);
  const auto got = everything(in, ops::delta_product),
             want = everything(in_double(in), ops::delta_product_definition);
  for (size_t i = 0; i < got.tensors.size(); ++i) {
    const Tensor reference = want.tensors[i].second;
    const double error =
        ((got.tensors[i].second.to(torch::kFloat64) - reference).norm() / reference.norm())
            .item<double>();
    if (error <= 1e-4) continue;
    std::fprintf(stderr, "kernel and definition disagree in %s by %g\n",
                 got.tensors[i].first.c_str(), error);
    std::exit(1);
  }
}

double flops_per_token(const Case& c, bool backward) {
  const double kv = double(c.H * c.K * c.V), n = double(c.N), q = c.q ? 1 : 0;
  return kv * (4 * n + 2 * q + (backward ? 10 * n + 4 * q : 0));
}

// `definition`: seconds per token, measured at the first call; negative where it is not wanted.
void run(benchmark::State& state, const Case& c, bool backward, double& definition) {
  const auto in = make_inputs(c);
  step(in, backward, ops::delta_product);  // the first touch of memory is the system's time
  const double begin = processor_seconds();
  for (auto _ : state) step(in, backward, ops::delta_product);
  const double seconds = processor_seconds() - begin;
  const double tokens = double(c.B * c.T), runs = double(state.iterations());
  const double per_token = seconds / runs / tokens;
  state.counters["ns/token"] = per_token * 1e9;
  state.counters["GFLOP/s"] = flops_per_token(c, backward) / per_token * 1e-9;
  if (definition < 0) return;
  if (definition == 0) definition = definition_per_token(c, backward);
  state.counters["x_definition"] = definition / per_token;
}

void add(const std::string& name, const Case& c, bool compare) {
  for (const bool backward : {false, true})
    benchmark::RegisterBenchmark(
        (name + (backward ? "/forward+backward" : "/forward")).c_str(),
        [=, definition = compare ? 0.0 : -1.0](benchmark::State& state) mutable {
          run(state, c, backward, definition);
        })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime()
        ->MinTime(0.2);
}

void gemm(benchmark::State& state) {
  const Tensor a = torch::rand({1024, 1024}), b = torch::rand({1024, 1024});
  const double begin = processor_seconds();
  for (auto _ : state) benchmark::DoNotOptimize(at::mm(a, b));
  const double seconds = processor_seconds() - begin;
  state.counters["GFLOP/s"] = 2 * 1.073741824 * double(state.iterations()) / seconds;
}

// One step per pass over the state against two, forward on one thread in turns, medians of seconds
// of this thread: what kernels/cpu/delta_product_forward.cpp chooses by. With `keep`, as training
// runs it, the errors and states for backward are written too. chunk_gemm is the rate of a product
// of 32 keys with the state, in the same turns: the most that chunks of 32 could work at.
struct StepsPerPass {
  Case c;
  bool keep;

  static double seconds() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
  }
  static double median(std::vector<double> x) {
    std::sort(x.begin(), x.end());
    return x[x.size() / 2];
  }

  void operator()(benchmark::State& state) const {
    const auto in = make_inputs(c);
    const int64_t segments = c.T / kernels::delta_product_segment(c.N);
    const Tensor o = torch::zeros({c.B, c.T, c.H, c.V}), S = torch::zeros({c.B, c.H, c.K, c.V});
    const Tensor error = torch::zeros({c.B, c.H, c.T, c.N, c.V});
    const Tensor states = torch::zeros({c.B, c.H, segments, c.K, c.V});
    const auto rows = [](const Tensor& x) {
      const bool steps = x.dim() == 5;
      return kernels::Rows{x.data_ptr(), x.stride(0), x.stride(1), steps ? x.stride(2) : 0,
                           x.stride(-2)};
    };
    kernels::DeltaProductForward p;
    p.B = p.S = c.B, p.T = c.T, p.N = c.N, p.H = c.H, p.K = c.K, p.V = c.V;
    p.q = rows(in.q), p.k = rows(in.k), p.v = rows(in.v), p.o = rows(o);
    p.beta = in.beta.data_ptr(), p.final_state = S.data_ptr();
    if (keep) p.error = error.data_ptr(), p.states = states.data_ptr();
    const Tensor keys = torch::rand({32, c.K}), one = torch::rand({c.K, c.V});
    Tensor read = torch::empty({32, c.V});
    const torch::NoGradGuard no_grad;
    std::vector<double> times[3];
    for (auto _ : state)
      for (const int steps : {1, 2, 0}) {
        const double begin = seconds();
        p.steps = steps;
        if (steps)
          kernels::delta_product_forward(p, kernels::serial);
        else
          for (int i = 0; i < 1000; ++i) at::mm_out(read, keys, one);
        times[steps].push_back(seconds() - begin);
      }
    const double t1 = median(times[1]), t2 = median(times[2]), tokens = double(c.B * c.T);
    state.counters["ns/token"] = t2 / tokens * 1e9;
    state.counters["GFLOP/s"] = flops_per_token(c, false) * tokens / t2 * 1e-9;
    state.counters["chunk_gemm"] = 64e-6 * double(c.K * c.V) / median(times[0]);
    state.counters["x_one_step"] = t1 / t2;
  }
};

// One layer's last-token training step of the parity model: packed, without queries.
Case parity(int sequences) {
  Case c{.B = 1, .H = 4, .K = 32, .V = 32, .state = false, .q = false, .dtype = torch::kFloat32};
  std::mt19937 random(1);
  c.T = 0;
  for (int s = 0; s < sequences; ++s) c.T += c.lengths.emplace_back(2 + random() % 38);
  return c;
}

void add_all() {
  benchmark::RegisterBenchmark("gemm_1024", gemm)->Unit(benchmark::kMillisecond)->UseRealTime();
  for (const Shape& s : {Shape{8, 512, 4, 32, 32}, {2, 2048, 8, 64, 64}, {1, 4096, 8, 128, 128}})
    for (const int64_t N : {1, 2, 4}) {
      const Case c{.B = s.B,
                   .T = s.T,
                   .N = N,
                   .H = s.H,
                   .K = s.K,
                   .V = s.V,
                   .state = false,
                   .dtype = torch::kFloat32};
      agree(c);
      add(cat("delta_product/", s.B, "x", s.T, "x", s.H, "x", s.K, "x", s.V, "/N:", N), c, true);
      for (const bool keep : {false, true})
        benchmark::RegisterBenchmark(
            cat("two_steps/", s.K, "x", s.V, "/N:", N, keep ? "/forward_to_train" : "/forward")
                .c_str(),
            StepsPerPass{c, keep})
            ->Unit(benchmark::kMillisecond)
            ->Iterations(15);
    }
  agree(parity(16));
  add("parity/256_packed", parity(256), false);
  const Case demo{
      .B = 32, .T = 40, .H = 2, .K = 8, .V = 8, .state = false, .dtype = torch::kFloat32};
  agree(demo);
  add("demo/32x40x2x8x8", demo, true);
  for (const int64_t T : {512, 2048, 8192, 32768, 65536})
    add(cat("length/T:", T),
        {.B = 1, .T = T, .H = 8, .K = 64, .V = 64, .state = false, .dtype = torch::kFloat32},
        false);
  add("decode/T:1", {.B = 1, .T = 1, .H = 4, .K = 32, .V = 32, .dtype = torch::kFloat32}, false);
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
