#include "base/free_memory.h"
#include "cli/train.h"
#include "ops/gpu.h"

// What training will take, told and held against the memory that is free.
namespace lrnn::cli {

Json to_json(const training::MemoryEstimate& e) {
  const auto whole = [](double bytes) { return bytes < 9e18 ? Json(int64_t(bytes)) : Json(bytes); };
  return {{"total", whole(e.total())},       {"weights", whole(e.weights)},
          {"gradients", whole(e.gradients)}, {"optimizer", whole(e.optimizer)},
          {"batch", whole(e.batch)},         {"evaluation", whole(e.evaluation)},
          {"spare", whole(e.spare)},         {"program", whole(e.program)}};
}

std::string memory_text(const training::MemoryEstimate& e) {
  const bool evaluation = e.evaluation > e.batch;
  return cat("about ", bytes(e.total()), " (weights ", bytes(e.weights), ", gradients ",
             bytes(e.gradients), ", optimiser ", bytes(e.optimizer),
             evaluation ? ", an evaluation " : ", a batch ",
             bytes(evaluation ? e.evaluation : e.batch), ", the rest ", bytes(e.spare + e.program),
             ")");
}

void require_memory(const experiments::RunConfig& config, const std::string& device, bool force) {
  if (force) return;
  const bool gpu = device != "cpu";
  const auto estimate = experiments::memory_of(config, gpu);
  const auto free = double(gpu ? ops::gpu()->free_memory() : free_memory());
  if (estimate.total() <= free) return;
  const double fixed =
      estimate.weights + estimate.gradients + estimate.optimizer + estimate.program;
  throw Error(
      cat("training this config needs ", memory_text(estimate), ", and ",
          gpu ? "the GPU has " : "there are ", bytes(free), gpu ? " left" : " free"),
      cat(fixed > free ? "try a smaller model.width, or fewer model.layers"
                       : "try a smaller train.batch, shorter sequences, or train.accumulate=8, "
                         "which works through a batch in parts",
          "; --force begins nevertheless"));
}

}  // namespace lrnn::cli
