#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/cuda/problem.h"

// The delta product on the GPU, one JSON line per shape and precision: errors against the float32
// recurrence first, then median milliseconds, forward alone and with backward, as called and as a
// recorded graph, which leaves the host out. `floor` counts the bytes of inputs and outputs once,
// at the copy bandwidth measured here.
namespace lrnn::bench {
namespace {

double copy_bandwidth() {
  const Tensor a = torch::randn({1 << 29}, torch::TensorOptions(torch::kCUDA)),
               b = torch::empty_like(a);
  return 2 * double(a.nbytes()) / time_of([&] { Tensor(b).copy_(a); }) / 1e6;  // GB/s
}

double forward_bytes(const Problem& p) {
  const double tokens = double(p.B * p.T * p.H), size = p.dtype == torch::kBFloat16 ? 2 : 4;
  return tokens * (size * (p.K + p.V + double(p.N) * (p.K + p.V)) + 4.0 * p.N);
}

void run(const Problem& p, const std::vector<std::string>& precisions, double bandwidth) {
  torch::manual_seed(1);
  auto in = make(p);
  const Tensor d_o = torch::randn({p.B, p.T, p.H, p.V}, in.v.options());
  in.precision = "exact";
  const auto want = with_gradients(in, d_o, {});
  for (const auto& precision : precisions) {
    in.precision = precision;
    nlohmann::ordered_json line = {{"op", "delta_product"},
                                   {"B", p.B},
                                   {"T", p.T},
                                   {"N", p.N},
                                   {"H", p.H},
                                   {"K", p.K},
                                   {"V", p.V},
                                   {"gate", p.gate},
                                   {"dtype", p.dtype == torch::kBFloat16 ? "bf16" : "fp32"},
                                   {"precision", precision}};
    {
      const auto got = with_gradients(in, d_o, {});
      const char* names[] = {"o", "S", "dq", "dk", "dv", "dbeta", "dlog_gate"};
      nlohmann::ordered_json errors;
      for (size_t i = 0; i < got.size(); ++i) {
        const double e = relative_error(got[i], want[i]);
        errors[names[i]] = std::isfinite(e) ? nlohmann::ordered_json(e) : "not finite";
      }
      line["error"] = errors;
    }
    torch::NoGradGuard no_grad;
    const auto once = [&] { ops::delta_product(in); };
    const auto twice = [&] {
      torch::AutoGradMode on(true);
      with_gradients(in, d_o, {});
    };
    const double forward = time_of(once), both = time_of(twice, 15);
    line["forward_graph_ms"] = graph_time_of(once),
    line["both_graph_ms"] = graph_time_of(twice, 15);
    line["forward_ms"] = forward, line["both_ms"] = both;
    const double floor = forward_bytes(p) / bandwidth / 1e6;
    line["floor_ms"] = floor, line["of_floor"] = floor / forward;
    const double flops = double(p.B * p.T * p.H) * (6.0 * p.N + 2) * p.K * p.V;
    line["recurrence_tflops"] = flops / forward / 1e9;
    std::puts(line.dump().c_str());
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace lrnn::bench

int main(int argc, char** argv) {
  using namespace lrnn::bench;
  if (!at::globalContext().hasCUDA()) return std::puts("{\"skipped\": \"no GPU was found\"}"), 0;
  const bool quick = argc > 1 && std::string(argv[1]) == "--quick";
  const double bandwidth = copy_bandwidth();
  std::printf("{\"copy_gb_per_s\": %.0f}\n", bandwidth);
  const std::vector<std::string> all = {"fast", "accurate", "exact"}, chunk = {"fast", "accurate"};
  run({8, 4096, 1, 16, 128, 128}, all, bandwidth);
  run({8, 4096, 2, 16, 128, 128}, chunk, bandwidth);
  run({256, 64, 1, 4, 32, 32, false, torch::kFloat32}, {"exact"}, bandwidth);
  run({1024, 128, 2, 12, 32, 32, false, torch::kFloat32}, {"exact"}, bandwidth);
  if (quick) return 0;
  run({8, 4096, 4, 16, 128, 128}, chunk, bandwidth);
  run({8, 4096, 1, 16, 128, 128, true}, chunk, bandwidth);
  run({2, 16384, 1, 16, 128, 128}, chunk, bandwidth);
  run({1, 32768, 1, 16, 128, 128, true}, chunk, bandwidth);
  run({8, 2048, 1, 8, 128, 256}, chunk, bandwidth);
  run({1024, 128, 2, 12, 32, 32}, {"exact"}, bandwidth);
  run({256, 64, 1, 4, 32, 32}, {"exact"}, bandwidth);
  run({64, 512, 1, 8, 64, 64}, all, bandwidth);
  run({8, 4096, 1, 4, 256, 256}, chunk, bandwidth);
  return 0;
}
