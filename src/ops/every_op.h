#pragma once
#include "ops/problem.h"
#include "ops/random_case.h"

namespace lrnn::ops {

// One case of an op. Tests and benchmarks may want it with another type, batch or length.
struct Ask {
  std::string shape;
  torch::Dtype dtype;
  int64_t B, T;
  double flops_per_token;  // of forward, by the recurrence
  double slack;            // how many times the op's tolerance it may be off
  std::function<Problem(int64_t B, int64_t T, const Draw&)> problem;

  Problem on(const Draw& draw) const { return problem(B, T, draw); }
};

struct CheckedOp {
  std::string name;
  bool recurrent = false;                                  // its length is a sequence's
  std::vector<Ask> typical, kernels, timed, timed_on_gpu;  // see Cases
  // One of those with other sizes and options.
  std::function<Ask(Chance&)> any;
  Tolerance tolerance = {};
};

// Every op that has a definition.
std::vector<CheckedOp> every_op();

// How far the op is from its definition in double on a device, results and gradients apart.
struct Agreement {
  double results = 0, gradients = 0;  // NaN where something is missing or not a number
  bool within(double limit) const { return results <= limit && gradients <= limit; }
};
// `floor`: a gradient smaller than this share of the largest, entry by entry, counts as that large:
// one that is 0 but for rounding has no relative error.
Agreement agreement(const Problem& problem, torch::Device device, double floor = 0);

}  // namespace lrnn::ops
