#include "bench/op_bench.h"
#include "ops/gated_linear_attention/gated_linear_attention.h"
#include "ops/rwkv7/rwkv7.h"
#include "training/memory.h"

// Gated linear attention and RWKV-7.
namespace lrnn {
namespace {

Tensors random_rows(int64_t B, int64_t T, int64_t H, int64_t D, bool rwkv7) {
  torch::manual_seed(1);
  const auto normal = [&] { return torch::randn({B, T, H, D}); };
  Tensors x = {normal(), normal() / std::sqrt(double(D)), normal(),
               -0.1 * torch::rand({B, T, H, D}), torch::randn({B, H, D, D})};
  if (!rwkv7) return x;
  const auto kk = normal();
  x.push_back(kk / kk.norm(2, -1, true));
  x.push_back(torch::rand({B, T, H, D}));
  return x;
}

void add_gla(int64_t batch, int64_t T, int64_t H, int64_t D) {
  const auto run = [](auto function) {
    return [=](const Tensors& x) {
      const auto out = function(ops::GatedLinearAttention{.q = x[0],
                                                          .k = x[1],
                                                          .v = x[2],
                                                          .log_gate = x[3],
                                                          .state = x[4],
                                                          .scale = {},
                                                          .negative = false,
                                                          .cu_seqlens = {}});
      return Tensors{out.o, out.state};
    };
  };
  add_op_bench({cat("gated_linear_attention/", batch, "x", T, "x", H, "x", D), batch, T,
                [=](int64_t B, int64_t length) { return random_rows(B, length, H, D, false); },
                run(ops::gated_linear_attention), run(ops::gated_linear_attention_definition)});
}

void add_rwkv7(int64_t batch, int64_t T, int64_t H, int64_t D) {
  const auto run = [](auto function) {
    return [=](const Tensors& x) {
      const auto out = function(ops::Rwkv7{.r = x[0],
                                           .log_w = x[3],
                                           .k = x[1],
                                           .v = x[2],
                                           .kk = x[5],
                                           .a = x[6],
                                           .state = x[4],
                                           .scale = 1,
                                           .cu_seqlens = {}});
      return Tensors{out.o, out.state};
    };
  };
  add_op_bench({cat("rwkv7/", batch, "x", T, "x", H, "x", D), batch, T,
                [=](int64_t B, int64_t length) { return random_rows(B, length, H, D, true); },
                run(ops::rwkv7), run(ops::rwkv7_definition)});
}

}  // namespace
}  // namespace lrnn

int main(int argc, char** argv) {
  lrnn::training::reuse_memory();  // as the program does
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  lrnn::add_gla(8, 512, 4, 32), lrnn::add_gla(2, 1024, 8, 64);
  lrnn::add_rwkv7(8, 512, 4, 32), lrnn::add_rwkv7(2, 1024, 8, 64);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
