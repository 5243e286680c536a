#pragma once
#include <gtest/gtest.h>
#include "ops/torch.h"

#include "experiments/run.h"

// A model and a task small enough to train in a blink.
struct Small {
  lrnn::experiments::RunConfig config;
  lrnn::tasks::TaskPtr task;
  lrnn::model::ModelPtr model;

  explicit Small(const std::vector<std::string>& overrides = {},
                 const std::string& file = "configs/tiny.yaml") {
    config = lrnn::experiments::read_config(std::string(LRNN_SOURCE_DIR) + "/" + file, overrides);
    task = lrnn::tasks::make(config.task);
    model = lrnn::experiments::build(config, *task);
  }
};

inline std::vector<torch::Tensor> gradients(lrnn::model::Model& model, const torch::Tensor& loss) {
  model.zero_grad();
  loss.backward();
  std::vector<torch::Tensor> out;
  for (const auto& p : model.parameters()) out.push_back(p.grad().clone());
  return out;
}
