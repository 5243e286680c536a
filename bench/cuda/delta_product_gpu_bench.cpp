#include "bench/cuda/problem.h"

// The delta product on the GPU, one JSON line per shape and precision: errors against the float32
// recurrence first, then forward alone and with backward as recorded graphs, which leave the host
// out (`called_ms`: with it), and the most memory alive in forward and backward.
namespace lrnn::bench {
namespace {

Json errors_of(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  const char* names[] = {"o", "S", "dq", "dk", "dv", "dbeta", "dlog_gate"};
  Json errors;
  for (size_t i = 0; i < got.size(); ++i) {
    const double e = relative_error(got[i], want[i]);
    errors[names[i]] = std::isfinite(e) ? Json(e) : "not finite";
  }
  return errors;
}

void run(const Problem& p, const std::vector<std::string>& precisions, const Ceilings& ceilings) {
  torch::manual_seed(1);
  auto in = make(p);
  const Tensor d_o = torch::randn({p.B, p.T, p.H, p.V}, in.v.options());
  double given = double(d_o.nbytes());
  for (Tensor* x : leaves(in)) given += double(x->nbytes());
  in.accuracy = "exact";
  auto want = with_gradients(in, d_o, {});
  for (const auto& precision : precisions) {
    in.accuracy = precision;
    Json line = shape_of(p);
    line["precision"] = precision;
    line["error"] = errors_of(with_gradients(in, d_o, {}), want);
    if (precision == precisions.back()) want.clear();
    torch::NoGradGuard no_grad;
    const auto forward = [&] { ops::delta_product(in); };
    const auto both = [&] {
      torch::AutoGradMode on(true);
      with_gradients(in, d_o, {});
    };
    line["forward"] = ceilings.rates(graph_time_of(forward), forward_cost(p));
    line["both"] = ceilings.rates(graph_time_of(both, 15), both_cost(p));
    line["called_ms"] = {time_of(forward), time_of(both, 15)};
    line["peak_mib"] = peak_mib(both, given);
    print(line);
  }
}

// One token of every sequence, state in and out: a step of decoding.
void decode(const Problem& p, const std::string& precision, const Ceilings& ceilings) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  auto in = make(p);
  in.state = torch::randn({p.B, p.H, p.K, p.V}, torch::TensorOptions(torch::kCUDA));
  auto exact = in;
  for (Tensor* x : leaves(exact)) *x = x->to(torch::kFloat64);
  const auto want = ops::delta_product_definition(exact);
  in.accuracy = precision;
  const auto got = ops::delta_product(in);
  Json line = shape_of(p);
  line["pass"] = "decode", line["precision"] = precision;
  line["error"] = errors_of({got.o, got.state}, {want.o, want.state});
  Cost cost = forward_cost(p);
  cost.bytes += 2 * double(in.state.nbytes());
  cost.flops = double(p.B * p.H) * (4.0 * p.N + 2) * double(p.K * p.V);
  line["forward"] = ceilings.rates(graph_time_of([&] { ops::delta_product(in); }), cost);
  print(line);
}

}  // namespace
}  // namespace lrnn::bench

int main(int argc, char** argv) {
  using namespace lrnn::bench;
  if (!has_gpu()) return 0;
  const bool quick = argc > 1 && std::string(argv[1]) == "--quick";
  const auto ceilings = Ceilings::measure();
  print(ceilings.json());
  const std::vector<std::string> all = {"fast", "accurate", "exact"}, chunk = {"fast", "accurate"};
  run({8, 4096, 1, 16, 128, 128}, all, ceilings);
  run({8, 4096, 2, 16, 128, 128}, chunk, ceilings);
  run({256, 64, 1, 4, 32, 32, false, torch::kFloat32}, {"exact"}, ceilings);
  run({1024, 128, 2, 12, 32, 32, false, torch::kFloat32}, {"exact"}, ceilings);
  run({1024, 128, 2, 12, 32, 32}, {"accurate", "exact"}, ceilings);
  if (quick) return 0;
  run({8, 4096, 4, 16, 128, 128}, chunk, ceilings);
  run({8, 4096, 1, 16, 128, 128, true}, chunk, ceilings);
  run({8, 4096, 2, 16, 128, 128, true}, chunk, ceilings);
  run({8, 4096, 4, 16, 128, 128, true}, {"fast"}, ceilings);
  run({2, 16384, 1, 16, 128, 128}, chunk, ceilings);
  run({1, 32768, 1, 16, 128, 128, true}, chunk, ceilings);
  run({8, 2048, 1, 8, 128, 256}, chunk, ceilings);
  run({256, 64, 1, 4, 32, 32}, {"accurate", "exact"}, ceilings);
  run({64, 512, 1, 8, 64, 64}, all, ceilings);
  run({8, 4096, 1, 4, 256, 256}, chunk, ceilings);
  decode({64, 1, 1, 16, 128, 128}, "exact", ceilings);
  decode({256, 1, 1, 4, 32, 32, false, torch::kFloat32}, "exact", ceilings);
  return 0;
}
