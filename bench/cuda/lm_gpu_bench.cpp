#include <CLI/CLI.hpp>
#include <chrono>

#include "base/error.h"
#include "bench/cuda/lm_shapes.h"
#include "bench/cuda/main.h"
#include "bench/cuda/timing.h"
#include "ops/every_op.h"
#include "ops/gpu.h"
#include "ops/linear_cross_entropy/case.h"
#include "ops/torch.h"
#include "tests/training/random_text.h"
#include "training/flops.h"
#include "training/head_loss.h"
#include "training/threads.h"
#include "training/trainer.h"

// Language models of the papers with random weights on random tokens, one JSON line each: from the
// start to the first update, tokens a second, peak memory. And the loss op beside the three
// products it is made of. bench/lm.py runs it, a process for each model, with other libraries.
namespace lrnn::bench {
namespace {

using Clock = std::chrono::steady_clock;
const Clock::time_point kStart = Clock::now();

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Options {
  std::string only, accuracy = "auto", recompute = "auto";
  int64_t updates = 20, accumulate = 1, blocks = 0;
  bool loss = false, eager = false;
};

double gib(int64_t bytes) { return double(bytes) / double(int64_t(1) << 30); }

void model(const Shape& shape, const Options& options) {
  namespace allocator = c10::cuda::CUDACachingAllocator;
  const auto config = config_of(shape, options.accuracy);
  training::TrainConfig train;
  train.batch = shape.batch * options.accumulate, train.accumulate = options.accumulate;
  train.lr = 3e-4, train.warmup = 512, train.betas = {0.9, 0.95}, train.weight_decay = 0.01;
  train.clip = 1, train.precision = "bfloat16", train.recompute = options.recompute;
  train.recompute_blocks = options.blocks;

  const RandomText task(kVocabulary, shape.length);
  lrnn::model::Model net(config, kVocabulary, 42);
  const auto stream = ops::gpu()->own_stream();
  net.to(torch::kCUDA);
  training::Trainer trainer(net, task, train, 1, !options.eager);
  const double first_loss = trainer.update(0, 0).loss, first = seconds_since(kStart);
  int64_t at = 1;
  for (; at < 4; ++at) trainer.update(at, at);
  const auto begin = Clock::now();
  double loss = 0;
  for (int64_t i = 0; i < options.updates; ++i, ++at) loss = trainer.update(at, at).loss;
  const double s = seconds_since(begin) / double(options.updates),
               rate = double(train.batch * shape.length) / s,
               flops = training::flops_per_token(net, shape.length);
  const auto stats = allocator::getDeviceStats(c10::cuda::current_device());
  const std::string device = ops::gpu()->name();
  Json line{{"bench", "lm"},
            {"model", shape.name},
            {"who", "lrnn"},
            {"device", device},
            {"parameters", net.parameter_count()},
            {"batch", train.batch},
            {"length", shape.length},
            {"accumulate", train.accumulate},
            {"recompute", train.recompute},
            {"recompute_blocks", training::recompute_of(train, net, true).blocks},
            {"accuracy", options.accuracy},
            {"recorded", !options.eager},
            {"first_loss", first_loss},
            {"loss", loss},
            {"first_update_s", first},
            {"update_ms", 1e3 * s},
            {"tokens_per_s", rate},
            {"gflop_per_token", flops / 1e9},
            {"peak_gib", gib(stats.allocated_bytes[0].peak)},
            {"reserved_gib", gib(stats.reserved_bytes[0].peak)},
            {"kernels", trainer.kernels()}};
  if (const auto peak = training::product_flops(device))
    line["mfu"] = rate * flops / *peak, line["mfu_of_tflop_per_s"] = *peak / 1e12;
  print(line);
}

// The whole op, backward included, after it agrees with its definition on a few rows; and its
// products alone, in the same chunks, with weights that are bfloat16 already.
void loss(int64_t R, int64_t D) {
  // The definition in double, on the CPU.
  const ops::Problem few = ops::problem_of(
      ops::make_linear_cross_entropy({.T = 100, .D = D, .n = kVocabulary}, torch::kBFloat16),
      ops::linear_cross_entropy, ops::linear_cross_entropy_definition);
  const double off = ops::agreement(few, torch::kCUDA).gradients;
  check(off < 0.01, "the gradients of linear_cross_entropy are off by ", off);
  auto in = ops::make_linear_cross_entropy({.T = R, .D = D, .n = kVocabulary},
                                           {torch::kBFloat16, torch::kCUDA});
  in.target = torch::randint(kVocabulary, {R}, in.target.options());
  const torch::Tensor w = in.weight, h = in.h;
  in.h = h.detach().requires_grad_(), in.weight = w.to(torch::kFloat32).requires_grad_();
  const auto op = [&] {
    in.h.mutable_grad().reset(), in.weight.mutable_grad().reset();
    ops::linear_cross_entropy(in).loss.backward();
  };
  const double ms = time_of(op, 15), mib = peak_mib(op, double(h.nbytes() + in.weight.nbytes()));
  const int64_t C = ops::LinearCrossEntropy::kRowsAtOnce;
  torch::Tensor logits = torch::randn({std::min(R, C), kVocabulary}, h.options()),
                dh = torch::empty_like(h), dw = torch::empty_like(in.weight.detach());
  const auto products = [&] {
    for (int64_t first = 0; first < R; first += C) {
      const int64_t n = std::min(C, R - first);
      torch::Tensor x = logits.narrow(0, 0, n), to = dh.narrow(0, first, n);
      at::mm_out(x, h.narrow(0, first, n), w.t());
      at::mm_out(to, x, w);
      at::addmm_out(dw, dw, x.t(), h.narrow(0, first, n), torch::kFloat32, first > 0 ? 1 : 0, 1);
    }
  };
  const double alone = time_of(products, 15);
  print(Json{{"bench", "loss"},
             {"rows", R},
             {"width", D},
             {"vocabulary", kVocabulary},
             {"error", off},
             {"ms", ms},
             {"products_ms", alone},
             {"of_products", ms / alone},
             {"products_tflop_per_s", 6e-9 * double(R) * double(D) * kVocabulary / alone},
             {"peak_mib", mib}});
}

int run(int argc, char** argv) {
  CLI::App app("language models on the GPU");
  Options options;
  app.add_option("--only", options.only, "models whose name holds this");
  app.add_option("--updates", options.updates, "that are timed")->check(CLI::PositiveNumber);
  app.add_option("--accumulate", options.accumulate, "parts")->check(CLI::PositiveNumber);
  app.add_option("--accuracy", options.accuracy, "auto, fast, accurate or exact");
  app.add_option("--recompute", options.recompute, "auto, none, cheap or block");
  app.add_option("--recompute-blocks", options.blocks, "of so many blocks; 0: as training does");
  app.add_flag("--eager", options.eager, "record nothing");
  app.add_flag("--loss", options.loss, "the loss op, and no model");
  CLI11_PARSE(app, argc, argv);
  if (!has_gpu()) return 0;
  if (const auto why = ops::load_gpu(); !ops::gpu()) throw Error(why);
  if (options.loss) {
    loss(32768, 1024), loss(16384, 2048);
    return 0;
  }
  for (const auto& shape : kShapes)
    if (std::string(shape.name).find(options.only) != std::string::npos) {
      model(shape, options);
      forget();
    }
  return 0;
}

}  // namespace
}  // namespace lrnn::bench

int main(int argc, char** argv) { return lrnn::bench::bench_main(argc, argv, lrnn::bench::run); }
