#include "bench/op_bench.h"
#include "ops/mlstm/mlstm.h"
#include "ops/slstm/slstm.h"
#include "training/memory.h"

// The two cells of xLSTM, with the heads of the published models of width 128.
namespace lrnn {
namespace {

constexpr int64_t kHeads = 4;

Tensors mlstm_inputs(int64_t B, int64_t T) {
  torch::manual_seed(1);
  const int64_t D = 64;
  const auto row = [&] { return torch::randn({B, T, kHeads, D}); };
  return {row(), row(), row(), torch::randn({B, T, kHeads}), 3 + torch::randn({B, T, kHeads})};
}
Tensors slstm_inputs(int64_t B, int64_t T) {
  torch::manual_seed(1);
  const int64_t D = 32;
  return {torch::randn({B, T, kHeads, 4, D}),
          torch::randn({kHeads, D, 4, D}) / std::sqrt(double(D)), torch::randn({kHeads, 4, D})};
}

template <auto cell> Tensors mlstm_with(const Tensors& x) {
  const auto out = cell({.q = x[0],
                         .k = x[1],
                         .v = x[2],
                         .i = x[3],
                         .f = x[4],
                         .state = {},
                         .scale = {},
                         .cu_seqlens = {}});
  return {out.h, out.state.C, out.state.n, out.state.m};
}
template <auto cell> Tensors slstm_with(const Tensors& x) {
  const auto out = cell({.wx = x[0], .R = x[1], .bias = x[2], .state = {}, .cu_seqlens = {}});
  return {out.h, out.state};
}

}  // namespace
}  // namespace lrnn

int main(int argc, char** argv) {
  lrnn::training::reuse_memory();  // as the program does
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  using namespace lrnn;
  add_op_bench({"slstm/8x256x4x32", 8, 256, slstm_inputs, slstm_with<ops::slstm>,
                slstm_with<ops::slstm_definition>});
  add_op_bench({"mlstm/8x256x4x64", 8, 256, mlstm_inputs, mlstm_with<ops::mlstm>,
                mlstm_with<ops::mlstm_definition>});
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
