#pragma once
#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>

// Relative RMS error against the reference, in double. NaN or Inf on either side is a failure: the
// comparison is written so that it must be *true* to pass. Tolerance follows the dtype.
inline double tolerance(torch::Dtype dtype) {
  return dtype == torch::kFloat64 ? 1e-11 : dtype == torch::kFloat32 ? 1e-5 : 1e-2;
}

inline testing::AssertionResult close_(const std::string& name, torch::Tensor got,
                                       torch::Tensor want, double limit) {
  if (!got.defined() || !want.defined())
    return testing::AssertionFailure() << name << ": undefined";
  if (got.sizes() != want.sizes())
    return testing::AssertionFailure() << name << ": " << got.sizes() << " is not " << want.sizes();
  got = got.detach().to(torch::kCPU, torch::kFloat64);
  want = want.detach().to(torch::kCPU, torch::kFloat64);
  const double error = (got - want).norm().item<double>() / (want.norm().item<double>() + 1e-30);
  if (error <= limit) return testing::AssertionSuccess();
  return testing::AssertionFailure() << name << ": relative error " << error << " > " << limit;
}
#define EXPECT_CLOSE(name, got, want) \
  EXPECT_TRUE(close_(name, got, want, tolerance((got).scalar_type())))
#define EXPECT_CLOSE_TO(name, got, want, limit) EXPECT_TRUE(close_(name, got, want, limit))
