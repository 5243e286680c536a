#include <chrono>
#include <map>
#include <tuple>

#include "cli/command.h"
#include "cli/doctor.h"
#include "ops/every_op.h"
#include "ops/torch.h"

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

RandomCheck check_at_random(uint64_t seed, const std::string& device) {
  ops::Chance chance(seed);
  const auto& op = chance.of(all_ops());
  const auto ask = op.any(chance);
  // Many kernels are for one type alone: a case keeps its own more often than not.
  const std::vector<torch::Dtype> types = {ask.dtype, ask.dtype, torch::kFloat64, torch::kFloat32,
                                           torch::kBFloat16};
  const auto dtype = chance.of(types);
  const auto a = ops::agreement(ask.on(ops::Draw(dtype, torch::kCPU, seed)), torch::Device(device));
  const double limit = ask.slack * op.tolerance.of(dtype);
  return {seed, ask.shape, {op.name, device, name_of(dtype), a.results, a.gradients, limit}};
}

RandomReport check_many_at_random(const RandomChecks& how, const std::vector<std::string>& devices,
                                  const std::function<void(int64_t, const RandomCheck&)>& show) {
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
      const auto found = check_at_random(how.first + uint64_t(out.cases), device);
      const auto& c = found.check;
      auto& row = worst.try_emplace({c.device, c.op, c.dtype}, c).first->second;
      take_worse(row.results, c.results), take_worse(row.gradients, c.gradients);
      row.limit = std::max(row.limit, c.limit);
      if (!c.ok()) out.wrong.push_back(found);
      show(out.cases + 1, found);
    }
  for (const auto& [key, row] : worst) out.worst.push_back(row);
  return out;
}

}  // namespace lrnn::cli
