#include <chrono>
#include <map>
#include <tuple>

#include "cli/command.h"
#include "cli/doctor.h"
#include "ops/every_op.h"
#include "ops/torch.h"

// `lrnn doctor --cases`: an op at sizes drawn by chance, beside its definition.
namespace lrnn::cli {
namespace {

const std::vector<ops::CheckedOp>& all_ops() {
  static const auto ops = ops::every_op();
  return ops;
}

const char* name_of(torch::Dtype dtype) {
  return dtype == torch::kFloat64 ? "float64" : dtype == torch::kFloat32 ? "float32" : "bfloat16";
}

void take_worse(double& worst, double x) {
  if (!(x <= worst)) worst = x;  // a NaN stays
}

}  // namespace

RandomCheck check_at_random(uint64_t seed, const std::string& device, const ShowCheck& show) {
  ops::Chance chance(seed);
  const auto& op = chance.of(all_ops());
  const auto ask = op.any(chance);
  // Many kernels are for one type alone: a case keeps its own more often than not.
  const std::vector<torch::Dtype> types = {ask.dtype, ask.dtype, torch::kFloat64, torch::kFloat32,
                                           torch::kBFloat16};
  const auto dtype = chance.of(types);
  // Chance also finds sizes at which an op magnifies rounding, such as a norm of three channels. A
  // kernel that is wrong is off by far more.
  const double room = dtype == torch::kBFloat16 ? 10 : 100;
  const double limit = room * ask.slack * op.tolerance.of(dtype);
  RandomCheck out{seed, ask.shape, {op.name, device, name_of(dtype), 0, 0, limit}, {}};
  if (show) show(out);
  try {
    // A single token's gate may have no gradient at all.
    const auto a = ops::agreement(ask.on(ops::Draw(dtype, torch::kCPU, seed)),
                                  torch::Device(device), /*floor=*/0.03);
    out.check.results = a.results, out.check.gradients = a.gradients;
  } catch (const Error& why) {  // sizes for which a GPU has no room
    out.refused = why.what();
  }
  return out;
}

RandomReport check_many_at_random(const RandomChecks& how, const std::vector<std::string>& devices,
                                  const ShowCheck& show) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto goes_on = [&](int64_t done) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return (how.cases <= 0 || done < how.cases) && (how.seconds <= 0 || seconds < how.seconds);
  };
  RandomReport out;
  std::map<std::tuple<std::string, std::string, std::string>, OpCheck> worst;
  for (; goes_on(out.cases) && !(out.interrupted = interrupted()); ++out.cases)
    for (const auto& device : devices) {
      const auto found = check_at_random(how.first + uint64_t(out.cases), device, show);
      const auto& c = found.check;
      if (!found.refused.empty()) {
        out.refused.push_back(found);
        continue;
      }
      auto& row = worst.try_emplace({c.device, c.op, c.dtype}, c).first->second;
      take_worse(row.results, c.results), take_worse(row.gradients, c.gradients);
      row.limit = std::max(row.limit, c.limit);
      if (!c.ok()) out.wrong.push_back(found);
    }
  for (const auto& [key, row] : worst) out.worst.push_back(row);
  return out;
}

}  // namespace lrnn::cli
