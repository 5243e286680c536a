#include "bench/cuda/timing.h"
#include "ops/every_op.h"

// Every op on the GPU, one JSON line per op and shape, on the cases of its case.h (the delta
// product has a program of its own). First small problems against the definition in float64 (the
// largest relative error of the results and the gradients; beyond the op's tolerance it is not
// timed and the exit code is 1), then median milliseconds of replayed graphs, which also shows that
// every op can be recorded. Forward alone keeps nothing for backward; backward is what forward with
// backward takes more than a forward that keeps what backward needs.
namespace lrnn::bench {
namespace {

using ops::Ask;
using ops::CheckedOp;
using torch::Tensor;
using Tensors = std::vector<Tensor>;

double largest_error(const CheckedOp& op, torch::Dtype dtype) {
  double largest = 0;
  for (const auto& ask : op.typical) {
    const auto a = ops::agreement(ask.on(dtype), torch::kCUDA);
    for (const double error : {a.results, a.gradients})
      largest = std::isfinite(error) ? std::max(largest, error) : 1e30;
  }
  return largest;
}

// Of the op's output; states are not asked for any.
Tensors gradients(const ops::Problem& p, const Tensor& dy) {
  ops::Tensors in = p.in;
  Tensors wanted;
  for (auto& [name, x] : in)
    if (x.is_floating_point()) wanted.push_back(x = x.detach().requires_grad_());
  const auto out = p.kernel(in);
  return torch::autograd::grad({out.at(p.output)}, wanted, {dy}, {}, false, true);
}

double bytes_of(const ops::Tensors& all) {
  double bytes = 0;
  for (const auto& [name, x] : all) bytes += double(x.nbytes());
  return bytes;
}

bool run(const CheckedOp& op, const Ask& ask, const Ceilings& ceilings) {
  Json line = {{"op", op.name}, {"shape", ask.shape}, {"error", largest_error(op, ask.dtype)}};
  if (line["error"] > op.tolerance.of(ask.dtype))
    return line["disagrees"] = "with the definition", print(line), false;
  const ops::Problem p = ask.on({ask.dtype, torch::kCUDA});
  const auto forward = [&] {
    const torch::NoGradGuard no_grad;
    return p.kernel(p.in);
  };
  const Tensor y = forward().at(p.output), dy = torch::randn_like(y);
  ops::Tensors leaves = p.in;
  for (auto& [name, x] : leaves)
    if (x.is_floating_point()) x = x.detach().requires_grad_();
  const auto both = [&] { gradients(p, dy); };
  const double flops = ask.flops_per_token * double(ask.B * ask.T);
  const Cost cost{bytes_of(p.in) + double(y.nbytes()), flops};
  const Cost all{2 * cost.bytes + bytes_of(p.in), 3 * flops};
  const double keeping_ms = graph_time_of([&] { p.kernel(leaves); }, 15),
               both_ms = graph_time_of(both, 15);
  line["forward"] = ceilings.rates(graph_time_of(forward), cost);
  line["both"] = ceilings.rates(both_ms, all);
  line["keeping_ms"] = keeping_ms, line["backward_ms"] = both_ms - keeping_ms;
  line["peak_mib"] = peak_mib(both, bytes_of(p.in) + double(dy.nbytes()));
  print(line);
  return true;
}

}  // namespace
}  // namespace lrnn::bench

// With an argument: the ops whose name contains it.
int main(int argc, char** argv) {
  using namespace lrnn::bench;
  if (!has_gpu()) return 0;
  const std::string only = argc > 1 ? argv[1] : "";
  const auto ceilings = Ceilings::measure();
  print(ceilings.json());
  bool good = true;
  for (const auto& op : lrnn::ops::every_op()) {
    if (op.name == "delta_product" || op.name.find(only) == std::string::npos) continue;
    for (const auto& ask : op.timed_on_gpu) good &= run(op, ask, ceilings);
  }
  return good ? 0 : 1;
}
