#include <algorithm>
#include <ctime>
#include <random>

#include "base/error.h"
#include "bench/main.h"
#include "kernels/delta_product.h"
#include "ops/delta_product/case.h"
#include "ops/torch.h"

// What ops_bench does not time of the delta product on the CPU: how many steps a pass over the
// state takes, a training step's packed sequences, and a step of decoding. gemm_1024 is what one
// large product reaches.
namespace lrnn {
namespace {

using Case = ops::DeltaProductCase;
using torch::Tensor;

void gemm(benchmark::State& state) {
  const Tensor a = torch::rand({1024, 1024}), b = torch::rand({1024, 1024});
  const std::clock_t begin = std::clock();
  for (auto _ : state) benchmark::DoNotOptimize(at::mm(a, b));
  const double seconds = double(std::clock() - begin) / CLOCKS_PER_SEC;
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
    const auto in = ops::make_delta_product(c, c.dtype);
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
    state.counters["GFLOP/s"] = ops::flops_per_token(c) * tokens / t2 * 1e-9;
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

void forward(benchmark::State& state, const Case& c) {
  const auto in = ops::make_delta_product(c, c.dtype);
  const torch::NoGradGuard no_grad;
  for (auto _ : state) benchmark::DoNotOptimize(ops::delta_product(in).state);
  state.counters["s/token"] =
      benchmark::Counter(double(c.B * c.T), benchmark::Counter::kIsIterationInvariantRate |
                                                benchmark::Counter::kInvert);
}

void add_all() {
  benchmark::RegisterBenchmark("gemm_1024", gemm)->Unit(benchmark::kMillisecond)->UseRealTime();
  for (const Case& c : ops::delta_product_cases().timed)
    for (const bool keep : {false, true})
      benchmark::RegisterBenchmark(
          cat("two_steps/", ops::shape_of(c), keep ? "/forward_to_train" : "/forward").c_str(),
          StepsPerPass{c, keep})
          ->Unit(benchmark::kMillisecond)
          ->Iterations(15);
  const Case decode{.B = 1, .T = 1, .H = 4, .K = 32, .V = 32, .dtype = torch::kFloat32};
  benchmark::RegisterBenchmark("parity/256_packed", forward, parity(256))
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
  benchmark::RegisterBenchmark("decode/T:1", forward, decode)
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
}

}  // namespace
}  // namespace lrnn

int main(int argc, char** argv) { return lrnn::bench_main(argc, argv, lrnn::add_all); }
