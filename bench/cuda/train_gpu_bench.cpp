#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/error.h"
#include "bench/cuda/timing.h"
#include "experiments/run.h"
#include "model/decoder.h"
#include "ops/gpu.h"
#include "ops/torch.h"
#include "training/evaluate.h"
#include "training/memory.h"
#include "training/threads.h"
#include "training/trainer.h"

// Training on the GPU, one JSON line each: an update of the models of the papers, alone (after its
// losses agree with the CPU's) and with several seeds sharing the GPU; evaluation; decoding.
// Milliseconds are the host's clock from batch to report, as a run has them. Run from the
// repository root.
namespace lrnn::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Overrides = std::vector<std::string>;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// A run of its own: model, stream and trainer.
struct Run {
  training::Threads threads{1};
  experiments::RunConfig config;
  tasks::TaskPtr task;
  model::ModelPtr model;
  std::shared_ptr<void> stream = ops::gpu()->own_stream();
  std::unique_ptr<training::Trainer> trainer;
  int64_t at = 0;

  Run(const std::string& file, const Overrides& overrides)
      : config(experiments::read_config(file, overrides)),
        task(tasks::make(config.task)),
        model(experiments::build(config, *task)) {
    model->to(torch::kCUDA);
    trainer =
        std::make_unique<training::Trainer>(*model, *task, config.train, uint64_t(config.seed));
  }
  void update() {
    trainer->update(at, at);
    ++at;
  }
};

// The largest relative difference between the losses of three updates here and on the CPU.
double disagreement(const std::string& file, const Overrides& overrides) {
  Run run(file, overrides);
  const auto model = experiments::build(run.config, *run.task);
  training::Trainer cpu(*model, *run.task, run.config.train, uint64_t(run.config.seed));
  double largest = 0;
  for (int64_t at = 0; at < 3; ++at) {
    const double want = cpu.update(at, at).loss, got = run.trainer->update(at, at).loss;
    largest = std::max(largest, std::abs(got - want) / want);
  }
  return largest;
}

// The median of `rounds` times that some updates take, for one of them.
double update_ms(Run& run, int rounds, int updates) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = Clock::now();
    for (int j = 0; j < updates; ++j) run.update();
    times.push_back(ms_since(begin) / updates);
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[size_t(rounds / 2)];
}

void step(const std::string& name, const std::string& file, Overrides overrides,
          const std::string& precision) {
  overrides.push_back("train.precision=" + precision);
  const double error = disagreement(file, overrides);
  check(error < 0.02, cat("the losses of ", name, " differ from the CPU's by ", error));
  const auto begin = Clock::now();
  Run run(file, overrides);
  run.update();
  const double first = ms_since(begin);
  for (int i = 0; i < 20; ++i) run.update();  // every length has come by
  const double ms = update_ms(run, 9, 20);
  print(Json{{"bench", "step"},
             {"model", name},
             {"precision", precision},
             {"error", error},
             {"ms", ms},
             {"kernels", run.trainer->kernels()},
             {"first_ms", first}});
}

void seeds(int64_t count, const std::string& file, Overrides overrides) {
  constexpr int kUpdates = 200;
  overrides.push_back("train.precision=bfloat16");
  std::barrier<> together(count + 1);
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      auto own = overrides;
      own.push_back(cat("seed=", i + 1));
      Run run(file, own);
      for (int j = 0; j < 20; ++j) run.update();
      together.arrive_and_wait();
      for (int j = 0; j < kUpdates; ++j) run.update();
      together.arrive_and_wait();
    });
  together.arrive_and_wait();
  const auto begin = Clock::now();
  together.arrive_and_wait();
  const double ms = ms_since(begin) / kUpdates;
  for (auto& thread : threads) thread.join();
  print(Json{
      {"bench", "seeds"}, {"seeds", count}, {"ms_of_all", ms}, {"ms_of_one", ms / double(count)}});
}

// The published evaluation of a model, recorded and kernel by kernel.
void evaluation(const std::string& file) {
  for (const bool record : {false, true}) {
    Run run(file, {});
    training::Evaluator evaluator(*run.model, *run.task, record);
    const training::EvaluateOptions how{.seed = 1, .precision = "bfloat16"};
    evaluator.evaluate(how);
    const auto begin = Clock::now();
    evaluator.evaluate(how);
    print(Json{
        {"bench", "evaluation"}, {"config", file}, {"recorded", record}, {"ms", ms_since(begin)}});
  }
}

// One token of each sequence, logits out; the host asks for the answer every time, as who decodes
// does.
void decoding(const std::string& file, int64_t sequences) {
  constexpr int kTokens = 500;
  for (const bool record : {false, true}) {
    Run run(file, {});
    model::Decoder decoder(*run.model, sequences, record);
    const torch::Tensor tokens = torch::zeros({sequences}, torch::kInt64).pin_memory();
    const auto step = [&] { decoder.step(tokens).argmax(-1).cpu(); };
    for (int i = 0; i < 20; ++i) step();
    const auto begin = Clock::now();
    for (int i = 0; i < kTokens; ++i) step();
    print(Json{{"bench", "decoding"},
               {"config", file},
               {"sequences", sequences},
               {"recorded", record},
               {"us", 1e3 * ms_since(begin) / kTokens},
               {"kernels", decoder.kernels()}});
  }
}

void all() {
  const std::string parity = "configs/chomsky/parity_delta_net_2.yaml",
                    s3 = "configs/deltaproduct/S3_n2.yaml";
  for (const char* precision : {"float32", "bfloat16"}) {
    step("parity, 256 words of 3 to 40", parity, {}, precision);
    step("parity, 256 words of 64", parity, {"task.train.length=[64, 64]"}, precision);
    step("S3, 1024 words of 128", s3, {"train.batch=1024"}, precision);
  }
  // The other models of that table.
  for (const auto& [name, file] :
       std::initializer_list<std::pair<const char*, const char*>>{{"Transformer", "transformer"},
                                                                  {"mLSTM", "xlstm10"},
                                                                  {"sLSTM", "xlstm01"},
                                                                  {"Mamba [-1,1]", "mamba_2"}})
    step(cat("parity, ", name), cat("configs/chomsky/parity_", file, ".yaml"), {}, "bfloat16");
  evaluation(parity);
  for (const int64_t sequences : {1, 256}) decoding(parity, sequences);
  for (const int64_t count : {1, 2, 4, 8, 16}) seeds(count, parity, {"task.train.length=[64, 64]"});
}

}  // namespace
}  // namespace lrnn::bench

int main() {
  if (!lrnn::bench::has_gpu()) return 0;
  lrnn::training::reuse_memory();  // as the program does
  try {
    lrnn::bench::all();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
