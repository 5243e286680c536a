#include "cli/self_test.h"

#include <algorithm>

#include "ops/every_op.h"
#include "ops/torch.h"

namespace lrnn::cli {

std::vector<OpCheck> check_ops(const std::vector<std::string>& devices) {
  std::vector<OpCheck> out;
  for (const auto& device : devices)
    for (const auto& op : ops::every_op())
      for (const auto& [name, dtype] : {std::pair("float32", torch::kFloat32),
                                        {"float64", torch::kFloat64},
                                        {"bfloat16", torch::kBFloat16}}) {
        OpCheck check{op.name, device, name, 0, 0, op.tolerance.of(dtype)};
        for (const auto& ask : op.typical) {
          const auto a = ops::agreement(ask.on(dtype), torch::Device(device));
          // A NaN stays.
          if (!(a.results <= check.results)) check.results = a.results;
          if (!(a.gradients <= check.gradients)) check.gradients = a.gradients;
        }
        out.push_back(check);
      }
  return out;
}

}  // namespace lrnn::cli
