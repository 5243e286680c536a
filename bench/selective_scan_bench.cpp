#include "bench/op_bench.h"
#include "ops/selective_scan/selective_scan.h"
#include "training/memory.h"

// The selective scan in the shape of the parity model and in that of a small language model.
namespace lrnn {
namespace {

ops::SelectiveScan scan_of(const Tensors& x, bool negative) {
  ops::SelectiveScan in;
  in.u = x[0], in.delta = x[1], in.A = x[2], in.B = x[3], in.C = x[4], in.D = x[5], in.z = x[6];
  in.delta_bias = x[7], in.state = x[8], in.negative = negative;
  return in;
}

void add_scan(int64_t batch, int64_t T, int64_t D, bool negative) {
  const int64_t N = 16;
  const auto run = [=](auto function) {
    return [=](const Tensors& x) {
      const auto out = function(scan_of(x, negative));
      return Tensors{out.y, out.state};
    };
  };
  add_op_bench({cat("selective_scan/", batch, "x", T, "x", D, negative ? "/[-1,1]" : "/[0,1]"),
                batch, T,
                [=](int64_t B, int64_t length) {
                  torch::manual_seed(1);
                  return Tensors{torch::randn({B, length, D}),
                                 torch::randn({B, length, D}) - 3,
                                 -torch::arange(1, N + 1).to(torch::kFloat32).repeat({D, 1}),
                                 torch::randn({B, length, N}),
                                 torch::randn({B, length, N}),
                                 torch::randn({D}),
                                 torch::randn({B, length, D}),
                                 torch::randn({D}),
                                 torch::randn({B, D, N})};
                },
                run(ops::selective_scan), run(ops::selective_scan_definition)});
}

}  // namespace
}  // namespace lrnn

int main(int argc, char** argv) {
  lrnn::training::reuse_memory();  // as the program does
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  for (const bool negative : {false, true}) lrnn::add_scan(64, 64, 256, negative);
  lrnn::add_scan(2, 1024, 1536, true);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
