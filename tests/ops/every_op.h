#pragma once
#include <gtest/gtest.h>

#include "ops/every_op.h"

namespace lrnn {

inline void expect_agreement(const ops::CheckedOp& op, const ops::Ask& ask, torch::Dtype dtype,
                             torch::Device device) {
  const auto a = ops::agreement(ask.on(dtype), device);
  const double limit = ask.slack * op.tolerance.of(dtype);
  EXPECT_LE(a.results, limit) << op.name << " " << ask.shape << " " << dtype;
  EXPECT_LE(a.gradients, limit) << op.name << " " << ask.shape << " " << dtype;
}

// What `lrnn doctor` asks of every op on a device.
inline void expect_every_op_agrees(torch::Device device) {
  for (const auto& op : ops::every_op())
    for (const auto dtype : {torch::kFloat32, torch::kFloat64, torch::kBFloat16})
      for (const auto& ask : op.typical) expect_agreement(op, ask, dtype, device);
}

}  // namespace lrnn
