#pragma once
#include <gtest/gtest.h>

#include "ops/every_op.h"

namespace lrnn {

// What `lrnn doctor` asks of every op on a device.
inline void expect_every_op_agrees(torch::Device device) {
  for (const auto& op : ops::every_op())
    for (const auto dtype : {torch::kFloat32, torch::kFloat64, torch::kBFloat16})
      for (size_t i = 0; i < op.problems.size(); ++i) {
        const auto a = ops::agreement(op.problems[i](dtype), device);
        EXPECT_LE(a.results, op.tolerance.of(dtype)) << op.name << " " << i << " " << dtype;
        EXPECT_LE(a.gradients, op.tolerance.of(dtype)) << op.name << " " << i << " " << dtype;
      }
}

}  // namespace lrnn
