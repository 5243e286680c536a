// One training step, batch generation to weight update, of the parity DeltaNet of the papers and of
// the demo's model, and the matrix products the first cannot do without. Run from the repository
// root.
#include "bench/main.h"
#include "experiments/run.h"
#include "ops/torch.h"
#include "training/threads.h"
#include "training/trainer.h"

namespace lrnn {
namespace {

constexpr const char* kParity = "configs/chomsky/parity_delta_net_2.yaml";
constexpr const char* kDemo = "configs/demo/parity_11.yaml";

// Packed, cropped and looked up in tables must be the same numbers as padded and whole.
double disagreement(model::Model& model, const tasks::Task& task) {
  const auto split = tasks::Split::kTrain;
  const auto examples = training::draw(task, 1, split, task.length(split), 0, 16);
  const auto batch = training::make_batch(examples.data(), 16, task.vocabulary());
  torch::NoGradGuard no_gradients;
  model::State state;
  const double packed =
      training::loss_sum(model.forward(batch.input, state, batch.context), batch).item<double>();
  double alone = 0;
  for (const auto& example : examples) {
    const auto one = training::make_batch(&example, 1, task.vocabulary());
    model::State fresh;
    const auto logits = model.forward(one.input, fresh);  // every position
    alone -= torch::log_softmax(logits[0][-1], 0)[example.target.back()].item<double>();
  }
  return std::abs(packed - alone) / alone;
}

void step(benchmark::State& bench, const char* file, int64_t threads) {
  const auto config = experiments::read_config(file, {});
  const auto task = tasks::make(config.task);
  const auto model = experiments::build(config, *task);
  if (disagreement(*model, *task) > 1e-5) return bench.SkipWithError("packed is not padded");
  training::Trainer trainer(*model, *task, config.train, 1);
  training::Threads guard(threads ? threads
                                  : training::choose_threads(*model, *task, config.train));
  int64_t at = 0;
  for (; at < 3; ++at) trainer.update(at, at);
  for (auto _ : bench) {
    trainer.update(at, at);
    ++at;
  }
  bench.counters["threads"] = at::get_num_threads();
}

// rows, in, out of every product whose rows are activations. The first block's q, k, v and beta are
// looked up in a table of three rows; the second block's q, output and MLP matter at the answers.
void gemms(benchmark::State& bench) {
  training::Threads guard(2);
  const int64_t tokens = 256 * 41 / 2, answers = 256, width = 128, hidden = 512;
  const int64_t shapes[][3] = {{tokens, width, width},       {tokens, width, 2 * hidden},
                               {tokens, hidden, width},      {tokens, width, 2 * width},
                               {4 * answers, width, width},  {answers, width, width},
                               {answers, width, 2 * hidden}, {answers, hidden, width}};
  struct Product {
    torch::Tensor x, w, dy;
  };
  std::vector<Product> products;
  double flops = 0;
  for (const auto& [rows, in, out] : shapes) {
    products.push_back(
        {torch::randn({rows, in}), torch::randn({out, in}), torch::randn({rows, out})});
    flops += 6.0 * double(rows * in * out);
  }
  for (auto _ : bench)
    for (const auto& p : products) {
      benchmark::DoNotOptimize(at::mm(p.x, p.w.t()));   // y
      benchmark::DoNotOptimize(at::mm(p.dy, p.w));      // dx
      benchmark::DoNotOptimize(at::mm(p.dy.t(), p.x));  // dw
    }
  bench.counters["GFLOP"] = flops * 1e-9;
  bench.counters["GFLOP/s"] =
      benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK_CAPTURE(step, parity, kParity, 2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(step, demo, kDemo, 0)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(gemms)->Name("step/gemms")->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace lrnn

int main(int argc, char** argv) {
  return lrnn::bench_main(argc, argv, [] {});
}
