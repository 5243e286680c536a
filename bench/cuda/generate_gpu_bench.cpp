#include <CLI/CLI.hpp>
#include <chrono>

#include "bench/cuda/lm_shapes.h"
#include "bench/cuda/main.h"
#include "bench/cuda/timing.h"
#include "experiments/generate.h"
#include "model/continuation.h"
#include "model/weight_copies.h"
#include "ops/gpu.h"
#include "ops/linears/thin_linear.h"
#include "training/precision.h"

// Generating with language models of the papers, random weights, as `lrnn generate --device cuda`
// does it: a prompt, then tokens by drawing, told to the host; one JSON line per number of
// sequences. And what a step is made of: its products, its recurrence, its draw. bench/lm.py runs
// it.
namespace lrnn::bench {
namespace {

using Clock = std::chrono::steady_clock;
using torch::Tensor;

double seconds(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

struct Options {
  std::string only = "340M", precision = "bfloat16";
  std::vector<int64_t> sequences = {1, 256};
  int64_t tokens = 512, prompt = 512;
  bool parts = false, eager = false;
};

// Tokens behind the first `skip` of each sequence are timed: before that a GPU records.
void generating(lrnn::model::Model& net, const Shape& shape, int64_t sequences,
                const Options& options) {
  namespace allocator = c10::cuda::CUDACachingAllocator;
  constexpr int64_t kSkip = 64;
  allocator::resetPeakStats(c10::cuda::current_device());
  experiments::GenerateOptions how;
  how.sequences = sequences, how.tokens = kSkip + options.tokens + 1, how.record = !options.eager;
  std::vector<int64_t> prompt;
  for (int64_t i = 0; i < options.prompt; ++i) prompt.push_back(i * 7919 % kVocabulary);
  int64_t said = 0, sum = 0;
  Clock::time_point begin = Clock::now(), first, from, to;
  experiments::generate(net, options.precision, prompt, how, [&](int64_t s, int64_t token) {
    sum += token;
    if (s == 0) {
      if (said == 0) first = Clock::now();
      if (said == kSkip) from = Clock::now();
      if (said == kSkip + options.tokens) to = Clock::now();
      ++said;
    }
    return true;
  });
  const double s = seconds(from, to) / double(options.tokens);
  const auto stats = allocator::getDeviceStats(c10::cuda::current_device());
  print(Json{{"bench", "generate"},
             {"model", shape.name},
             {"who", "lrnn"},
             {"device", ops::gpu()->name()},
             {"parameters", net.parameter_count()},
             {"sequences", sequences},
             {"precision", options.precision},
             {"recorded", how.record},
             {"prompt", options.prompt},
             {"tokens", options.tokens},
             {"first_token_s", seconds(begin, first)},
             {"step_us", 1e6 * s},
             {"tokens_per_s", double(sequences) / s},
             {"peak_gib", double(stats.allocated_bytes[0].peak) / double(int64_t(1) << 30)},
             {"sum_of_ids", sum}});
  forget();
}

// One step on the GPU without the host, and its draw alone.
void step(lrnn::model::Model& net, int64_t sequences, const Options& options) {
  const torch::InferenceMode no_gradients;
  const training::Precision guard(options.precision, torch::kCUDA);
  const lrnn::model::WeightCopies copies(
      net, options.precision == "bfloat16" ? torch::kBFloat16 : torch::kFloat32);
  constexpr int64_t kSteps = lrnn::model::Continuation::kSteps;
  lrnn::model::Continuation going(net, {}, {}, torch::zeros(sequences, torch::kInt64));
  const auto cuda = torch::TensorOptions(torch::kFloat64).device(torch::kCUDA);
  going.next(torch::rand({1, sequences}, cuda));
  const Tensor u = torch::rand({kSteps, sequences}, cuda);
  going.next(u);
  const double ms = time_of([&] { going.next(u); }, 10) / double(kSteps);
  const Tensor logits = torch::randn({sequences, kVocabulary}, cuda.dtype(torch::kBFloat16));
  Json draws;
  const auto draw = [&](const char* name, const ops::Drawing& how) {
    draws[name] = 1e3 * time_of([&] {
                    for (int i = 0; i < 10; ++i) ops::draw_tokens(logits, u[0], how);
                  }) /
                  10;
  };
  draw("all", {}), draw("greedy", {.temperature = 0}), draw("top_k_and_p", {.8, 40, .95});
  print(Json{{"bench", "generate step"},
             {"sequences", sequences},
             {"step_us", 1e3 * ms},
             {"kernels_per_step", double(going.kernels()) / double(kSteps)},
             {"draw_us", draws}});
  forget();
}

// Products of few rows, with as many matrices as a model has: none is in the cache.
void products() {
  const auto bf16 = torch::dtype(torch::kBFloat16).device(torch::kCUDA);
  const torch::InferenceMode no_gradients;
  for (const auto& [D, n] : std::vector<std::pair<int64_t, int64_t>>{
           {1024, 3080}, {1024, 1024}, {1024, 5632}, {2816, 1024}, {1024, 32000}}) {
    std::vector<Tensor> weights;
    for (int i = 0; i < 24; ++i) weights.push_back(torch::randn({n, D}, bf16));
    Json line{{"bench", "generate product"}, {"D", D}, {"n", n}};
    for (const int64_t rows : {1, 4}) {
      const Tensor x = torch::randn({rows, D}, bf16);
      const auto us = [&](auto&& product) {
        return 1e3 * graph_time_of([&] {
                 for (const Tensor& w : weights) product(w);
               }) /
               double(weights.size());
      };
      line[cat("thin_us_", rows)] = us([&](const Tensor& w) { ops::thin_linear(x, w); });
      line[cat("library_us_", rows)] = us([&](const Tensor& w) { at::mm(x, w.t()); });
    }
    line["gb_per_s"] = double(2 * D * n) / line["thin_us_1"].get<double>() / 1e3;
    print(line);
  }
}

int run(int argc, char** argv) {
  CLI::App app("generating on the GPU");
  Options options;
  app.add_option("--only", options.only, "models whose name holds this (340M)");
  app.add_option("--sequences", options.sequences, "side by side (1 256)");
  app.add_option("--tokens", options.tokens, "that are timed")->check(CLI::PositiveNumber);
  app.add_option("--prompt", options.prompt, "tokens before them")->check(CLI::PositiveNumber);
  app.add_option("--precision", options.precision, "bfloat16 or float32");
  app.add_flag("--eager", options.eager, "record nothing");
  app.add_flag("--parts", options.parts, "what a step is made of, too");
  CLI11_PARSE(app, argc, argv);
  if (!has_gpu()) return 0;
  if (const auto why = ops::load_gpu(); !ops::gpu()) throw Error(why);
  const auto stream = ops::gpu()->own_stream();
  for (const auto& shape : kShapes) {
    if (std::string(shape.name).find(options.only) == std::string::npos) continue;
    lrnn::model::Model net(config_of(shape), kVocabulary, 42);
    net.to(torch::kCUDA);
    for (const int64_t n : options.sequences) generating(net, shape, n, options);
    if (options.parts)
      for (const int64_t n : options.sequences) step(net, n, options);
  }
  if (options.parts) products();
  return 0;
}

}  // namespace
}  // namespace lrnn::bench

int main(int argc, char** argv) { return lrnn::bench::bench_main(argc, argv, lrnn::bench::run); }
