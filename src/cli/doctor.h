#pragma once
#include <cstdint>
#include <functional>
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

// An op with sizes, options, type and numbers by chance, all of which follow from the seed.
struct RandomCheck {
  uint64_t seed = 0;
  std::string shape;
  OpCheck check;
  std::string refused;  // why the op does not take these sizes on this device
};
// Sees a case before it is asked.
using ShowCheck = std::function<void(const RandomCheck&)>;
RandomCheck check_at_random(uint64_t seed, const std::string& device, const ShowCheck& show = {});

// Cases by chance, one a seed from the first on, on every device.
struct RandomChecks {
  uint64_t first = 1;
  int64_t cases = 0;   // at most; 0: no limit
  double seconds = 0;  // after which no case begins; 0: no limit
  bool wanted() const { return cases > 0 || seconds > 0; }
};
struct RandomReport {
  int64_t cases = 0;
  std::vector<OpCheck> worst;               // of each op, device and type
  std::vector<RandomCheck> wrong, refused;  // in their order
  bool interrupted = false;
};
RandomReport check_many_at_random(const RandomChecks& how, const std::vector<std::string>& devices,
                                  const ShowCheck& show);

}  // namespace lrnn::cli
