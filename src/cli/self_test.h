#pragma once
#include <string>
#include <vector>

namespace lrnn::cli {

// One op on this machine against its definition in double precision.
struct OpCheck {
  std::string op, what, dtype;  // what: "forward" or "gradients"
  double error, limit;          // relative root mean square, the worst over the op's tensors
  bool ok() const { return error <= limit; }  // false for NaN
};

std::vector<OpCheck> check_ops();

}  // namespace lrnn::cli
