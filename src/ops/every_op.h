#pragma once
#include "ops/problem.h"

namespace lrnn::ops {

// Every op that has a definition, with inputs that are typical of it.
struct CheckedOp {
  std::string name;
  std::vector<std::function<Problem(torch::Dtype)>> problems;
  Tolerance tolerance = {};
};
std::vector<CheckedOp> every_op();

// How far the op is from its definition in double on a device, results and gradients apart.
struct Agreement {
  double results = 0, gradients = 0;  // NaN where something is missing or not a number
};
Agreement agreement(const Problem& problem, torch::Device device);

}  // namespace lrnn::ops
