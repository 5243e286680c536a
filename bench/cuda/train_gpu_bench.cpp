#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/error.h"
#include "bench/cuda/timing.h"
#include "experiments/run.h"
#include "ops/gpu.h"
#include "training/gpu_trainer.h"
#include "training/threads.h"

// One training step on the GPU, batch to weights, as `lrnn train --device cuda` makes it: one JSON
// line per model. Agreement first: the losses of three updates beside those of the CPU. Then the
// median of many updates; for several seeds the time in which all of them make one. Run from the
// repository root.
namespace lrnn::bench {
namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// A model, and a trainer for it on either device.
struct Run {
  experiments::RunConfig config;
  tasks::TaskPtr task;
  model::ModelPtr model;
  std::unique_ptr<training::Trainer> trainer;

  Run(const std::string& file, std::vector<std::string> overrides, int64_t seed,
      torch::Device device) {
    overrides.push_back(cat("seed=", seed));
    config = experiments::read_config(file, overrides);
    task = tasks::make(config.task), model = experiments::build(config, *task);
    model->to(device);
    trainer = training::make_trainer(*model, *task, config.train, uint64_t(seed));
  }
  double update(int64_t at) { return trainer->update(at, at).loss; }
};

struct Model {
  std::string name, file;
  std::vector<std::string> overrides;
};

// The largest relative difference of the losses of three updates.
double disagreement(const Model& m) {
  Run cpu(m.file, m.overrides, 1, torch::kCPU);
  const auto stream = ops::gpu()->own_stream();
  Run gpu(m.file, m.overrides, 1, torch::kCUDA);
  double largest = 0;
  for (int64_t at = 0; at < 3; ++at) {
    const double want = cpu.update(at), got = gpu.update(at);
    largest = std::max(largest, std::abs(got - want) / want);
  }
  return largest;
}

double median_update(const Model& m, int updates) {
  const auto stream = ops::gpu()->own_stream();
  Run run(m.file, m.overrides, 1, torch::kCUDA);
  int64_t at = 0;
  for (; at < 20; ++at) run.update(at);
  std::vector<double> all;
  for (int i = 0; i < updates; ++i, ++at) {
    const auto begin = Clock::now();
    run.update(at);
    all.push_back(ms_since(begin));
  }
  std::nth_element(all.begin(), all.begin() + updates / 2, all.end());
  return all[size_t(updates) / 2];
}

// Runs in threads of one process, as `lrnn reproduce --jobs` has them.
double together(const Model& m, int seeds, int updates) {
  std::barrier ready(seeds + 1);
  std::vector<std::thread> threads;
  std::atomic<bool> failed = false;
  for (int seed = 1; seed <= seeds; ++seed)
    threads.emplace_back([&, seed] {
      const training::Threads one(1);
      const auto stream = ops::gpu()->own_stream();
      Run run(m.file, m.overrides, seed, torch::kCUDA);
      int64_t at = 0;
      for (; at < 20; ++at) run.update(at);
      ready.arrive_and_wait();
      for (int i = 0; i < updates; ++i, ++at)
        if (!std::isfinite(run.update(at))) failed = true;
      ready.arrive_and_wait();
    });
  ready.arrive_and_wait();
  const auto begin = Clock::now();
  ready.arrive_and_wait();
  const double ms = ms_since(begin) / updates;
  for (auto& t : threads) t.join();
  check(!failed, "a loss was not finite");
  return ms;
}

bool run(const Model& m, int updates, int seeds = 1) {
  Json line = {{"op", "training step"}, {"model", m.name}, {"seeds", seeds}};
  if (seeds == 1) {
    const double error = disagreement(m);
    line["error"] = error;
    if (!(error < 0.02)) return line["disagrees"] = "with the CPU", print(line), false;
  }
  line["ms"] = seeds == 1 ? median_update(m, updates) : together(m, seeds, updates);
  print(line);
  return true;
}

}  // namespace
}  // namespace lrnn::bench

int main() {
  using namespace lrnn::bench;
  if (!has_gpu()) return 0;
  const auto precision = [](Model m, const std::string& name) {
    m.name += ", " + name, m.overrides.push_back("train.precision=" + name);
    return m;
  };
  const Model parity{"parity DeltaNet 128 x 2, B 256, T 64",
                     "configs/chomsky/parity_delta_net_2.yaml",
                     {"task.train.length=64"}};
  const Model s3{"S3 DeltaProduct2 128 x 1, B 1024, T 128",
                 "configs/deltaproduct/S3_n2.yaml",
                 {"train.batch=1024"}};
  bool good = true;
  for (const char* name : {"float32", "bfloat16"}) {
    good &= run(precision(parity, name), 200);
    good &= run(precision(parity, name), 200, 16);
    good &= run(precision(s3, name), 50);
  }
  return good ? 0 : 1;
}
