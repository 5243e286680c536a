#pragma once
#include <string>
#include <vector>

namespace lrnn::cli {

// One op on a device of this machine against its definition in double precision.
struct OpCheck {
  std::string op, device, dtype;
  double results, gradients, limit;  // relative root mean square, the worst over the op's tensors
  bool ok() const { return results <= limit && gradients <= limit; }  // false for NaN
};

std::vector<OpCheck> check_ops(const std::vector<std::string>& devices);

}  // namespace lrnn::cli
