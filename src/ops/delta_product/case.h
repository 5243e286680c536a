#pragma once
#include <ostream>

#include "ops/delta_product/delta_product.h"
#include "ops/problem.h"

namespace lrnn::ops {

struct DeltaProductCase {
  int64_t B = 2, T = 5, N = 1, H = 2, K = 3, V = 3;
  bool gate = false, state = true, q = true;
  torch::Dtype dtype = torch::kFloat64;
  std::vector<int64_t> lengths = {};  // packed sequences, B = 1 and T their sum
  double cancels = 1;  // how much smaller a result is than its terms, whose rounding it inherits
  std::string accuracy = {};  // the op's own choice
  double beta = 2;            // the largest
  bool wide_beta = false;     // in float32 beside bfloat16, as a model gives it
  int64_t key_heads = 0;      // 0: as many as H
  bool channels = false;      // the gate is one per key channel

  int64_t G() const { return key_heads ? key_heads : H; }
};

inline std::ostream& operator<<(std::ostream& out, const DeltaProductCase& c) {
  return out << "B " << c.B << " T " << c.T << " N " << c.N << " H " << c.H << " K " << c.K << " V "
             << c.V << " gate " << c.gate << " state " << c.state << " q " << c.q << " " << c.dtype
             << " " << c.accuracy << " key heads " << c.G() << " channels " << c.channels;
}

// Keys of length one and step sizes up to 2: reflections, which forget nothing.
inline DeltaProduct make_delta_product(const DeltaProductCase& c, const Draw& draw) {
  DeltaProduct in;
  if (c.q) in.q = draw.io(draw.unit({c.B, c.T, c.G(), c.K}));
  in.k = draw.io(draw.unit({c.B, c.T, c.N, c.G(), c.K}));
  in.v = draw.io(draw.normal({c.B, c.T, c.N, c.H, c.V}));
  const Tensor beta = c.beta * draw.uniform({c.B, c.T, c.N, c.H});
  in.beta = c.wide_beta ? draw.real(beta) : draw.io(beta);
  if (c.gate) {
    std::vector<int64_t> sizes = {c.B, c.T, c.H};
    if (c.channels) sizes.push_back(c.K);
    in.log_gate = draw.real(-0.3 * draw.uniform(sizes));
  }
  in.cu_seqlens = bounds(c.lengths);
  if (c.state) in.state = draw.real(draw.normal({sequences(c.B, c.lengths), c.H, c.K, c.V}));
  in.accuracy = c.accuracy;
  return in;
}

inline std::string shape_of(const DeltaProductCase& c) {
  return shape_text({c.B, c.T, c.N, c.H, c.K, c.V}, c.dtype) +
         (c.G() < c.H ? " " + std::to_string(c.G()) + " key heads" : "") +
         (c.channels ? " channels" : "");
}
// The state's multiply-adds, without the products of a chunk.
inline double flops_per_token(const DeltaProductCase& c) {
  return double(c.H * c.K * c.V) * double(4 * c.N + (c.q ? 2 : 0));
}

inline Cases<DeltaProductCase> delta_product_cases() {
  using Case = DeltaProductCase;
  const auto bf16 = torch::kBFloat16, fp32 = torch::kFloat32;
  Cases<Case> out;
  // An odd length with a gate, and what tensor cores are made for.
  out.typical = {{.B = 2, .T = 67, .N = 2, .H = 3, .K = 16, .V = 24, .gate = true},
                 {.B = 1, .T = 130, .N = 1, .H = 2, .K = 64, .V = 64, .state = false},
                 {.B = 2, .T = 35, .N = 2, .H = 6, .K = 16, .V = 8, .gate = true, .key_heads = 2}};
  const auto with_channels = [](Case c) {
    c.gate = c.channels = true;
    return c;
  };
  // Packed sequences without outputs, of which one is empty.
  const auto packed = [&](int64_t H, int64_t V, int64_t key_heads) {
    Case c{.B = 1, .T = 140, .H = H, .K = 128, .V = V, .q = false, .dtype = bf16};
    c.lengths = {70, 0, 70}, c.key_heads = key_heads;
    return c;
  };
  out.typical.push_back(with_channels({.B = 2, .T = 67, .N = 1, .H = 3, .K = 16, .V = 24}));
  out.typical.push_back(
      with_channels({.B = 1, .T = 35, .N = 3, .H = 4, .K = 33, .V = 8, .key_heads = 2}));
  const auto kernel = [&](Case c, const std::vector<std::string>& accuracies) {
    for (const bool gate : {false, true})
      for (const auto& accuracy : accuracies) {
        c.gate = gate, c.accuracy = accuracy, c.beta = 1;  // no digits lost to beta > 1
        out.kernels.push_back(c);
      }
  };
  const auto channel_kernel = [&](Case c, const std::vector<std::string>& accuracies) {
    for (const auto& accuracy : accuracies) {
      c.accuracy = accuracy, c.beta = 1;
      out.kernels.push_back(with_channels(c));
    }
  };
  for (const auto dtype : {torch::kFloat64, fp32, bf16})
    for (const int64_t K : {33, 72, 130})  // a thread, two and more hold a column
      kernel({.B = 1, .T = 5, .N = 2, .H = 1, .K = K, .V = 9, .dtype = dtype}, {"exact"});
  kernel({.B = 1, .T = 20, .H = 1, .K = 40, .V = 9, .dtype = fp32, .lengths = {3, 0, 17}},
         {"exact"});
  for (const int64_t N : {1, 2}) {
    // Small heads; in chunks where there are as many as schedulers on the chip (choose.h).
    for (const auto dtype : {fp32, bf16})
      kernel({.B = 2, .T = 19, .N = N, .H = 2, .K = 16, .V = 32, .dtype = dtype}, {"exact"});
    kernel({.B = 128, .T = 18, .N = N, .H = 4, .K = 32, .V = 16, .dtype = bf16}, {"accurate"});
    // One chunk; warp groups; 25 chunks in three segments (choose.h).
    kernel({.B = 1, .T = 37, .N = N, .H = 2, .K = 48, .V = 112, .state = false, .dtype = bf16},
           {"accurate"});
    for (const int64_t K : {64, 128})
      for (const int64_t V : {64, 128})
        kernel({.B = 1, .T = 70 / N + 1, .N = N, .H = 1, .K = K, .V = V, .dtype = bf16},
               {"fast", "accurate"});
    kernel({.B = 1, .T = 1600 / N, .N = N, .H = 1, .K = 64 * N, .V = 64, .dtype = bf16},
           {"fast", "accurate"});
  }
  // Chunks on mma.sync.
  for (const auto& [N, K, V] : {std::tuple{1, 32, 48}, {2, 64, 16}, {1, 128, 80}, {3, 256, 64}})
    kernel({.B = 1, .T = 70 / N + 1, .N = N, .H = 1, .K = K, .V = V, .dtype = bf16},
           {"fast", "accurate"});
  kernel(packed(1, 32, 0), {"fast", "accurate"});
  // Heads that share keys, by every method: exact in its types, small, small chunks, one chunk,
  // mma.sync, warp groups, segments.
  for (const auto dtype : {torch::kFloat64, fp32, bf16})
    kernel({.B = 2, .T = 5, .N = 2, .H = 6, .K = 33, .V = 9, .dtype = dtype, .key_heads = 2},
           {"exact"});
  for (const auto dtype : {fp32, bf16})
    kernel({.B = 2, .T = 19, .N = 2, .H = 4, .K = 16, .V = 32, .dtype = dtype, .key_heads = 1},
           {"exact"});
  kernel({.B = 64, .T = 18, .H = 12, .K = 32, .V = 16, .dtype = bf16, .key_heads = 4},
         {"accurate"});
  kernel({.B = 2,
          .T = 37,
          .N = 2,
          .H = 4,
          .K = 48,
          .V = 112,
          .state = false,
          .dtype = bf16,
          .key_heads = 2},
         {"accurate"});
  for (const auto& [T, N, H, K, V] : {std::tuple{71, 1, 6, 32, 48},
                                      {36, 2, 4, 64, 16},
                                      {71, 1, 6, 128, 128},
                                      {36, 2, 4, 72, 64},
                                      {1600, 1, 2, 64, 64}})
    kernel({.B = 1, .T = T, .N = N, .H = H, .K = K, .V = V, .dtype = bf16, .key_heads = H / 2},
           {"fast", "accurate"});
  kernel(packed(3, 64, 1), {"fast", "accurate"});
  // Gates of key channels.
  for (const auto dtype : {torch::kFloat64, fp32, bf16})
    for (const int64_t K : {33, 72, 130})
      channel_kernel(
          {.B = 1, .T = 19, .N = 2, .H = 2, .K = K, .V = 9, .dtype = dtype, .key_heads = 1},
          {"exact"});
  channel_kernel({.B = 1, .T = 60, .H = 1, .K = 40, .V = 9, .dtype = fp32, .lengths = {3, 0, 57}},
                 {""});
  for (const auto& [T, N, H, K, V] : {std::tuple{70, 1, 2, 128, 128},
                                      {71, 1, 1, 72, 48},
                                      {36, 2, 4, 64, 16},
                                      {140, 1, 2, 24, 32}})
    channel_kernel({.B = 1, .T = T, .N = N, .H = H, .K = K, .V = V, .dtype = bf16, .key_heads = 1},
                   {"fast", "accurate"});
  channel_kernel(packed(1, 32, 0), {"accurate"});
  for (const auto& [B, T, H, K] : {std::tuple{8, 512, 4, 32}, {2, 2048, 8, 64}, {1, 4096, 8, 128}})
    for (const int64_t N : {1, 2, 4})
      out.timed.push_back(
          {.B = B, .T = T, .N = N, .H = H, .K = K, .V = K, .state = false, .dtype = fp32});
  for (const bool channels : {false, true})
    out.timed.push_back({.B = 2,
                         .T = 2048,
                         .H = 8,
                         .K = 64,
                         .V = 64,
                         .gate = true,
                         .state = false,
                         .dtype = fp32,
                         .channels = channels});
  out.timed.push_back(
      {.B = 32, .T = 40, .H = 2, .K = 8, .V = 8, .state = false, .dtype = fp32});  // the demo
  const auto gpu = [&](Case c, const std::vector<std::string>& accuracies) {
    for (const auto& accuracy : accuracies)
      c.state = false, c.wide_beta = true, c.accuracy = accuracy, out.timed_on_gpu.push_back(c);
  };
  gpu({.B = 8, .T = 4096, .H = 16, .K = 128, .V = 128, .dtype = bf16},
      {"fast", "accurate", "exact"});
  for (const bool gate : {false, true})
    for (const int64_t N : {1, 2, 4})
      if (gate || N > 1)
        gpu({.B = 8, .T = 4096, .N = N, .H = 16, .K = 128, .V = 128, .gate = gate, .dtype = bf16},
            {"fast", "accurate"});
  gpu({.B = 2, .T = 16384, .H = 16, .K = 128, .V = 128, .dtype = bf16}, {"fast", "accurate"});
  gpu({.B = 1, .T = 32768, .H = 16, .K = 128, .V = 128, .gate = true, .dtype = bf16},
      {"fast", "accurate"});
  for (const auto& [B, T] : {std::pair{8, 4096}, {1, 8192}})  // Kimi Delta Attention
    gpu(with_channels({.B = B, .T = T, .H = 16, .K = 128, .V = 128, .dtype = bf16, .beta = 1}),
        {"fast", "accurate"});
  // Qwen3-Next and Qwen3.5, in one piece and shared out among GPUs.
  for (const int64_t T : {8192, 32768, 65536})
    for (const auto& [G, H] : {std::pair{2, 8}, {4, 16}, {16, 32}, {16, 64}})
      gpu({.B = 1,
           .T = T,
           .H = H,
           .K = 128,
           .V = 128,
           .gate = true,
           .dtype = bf16,
           .beta = 1,
           .key_heads = G},
          {"fast"});
  gpu({.B = 8, .T = 2048, .H = 8, .K = 128, .V = 256, .dtype = bf16}, {"fast", "accurate"});
  gpu({.B = 8, .T = 4096, .H = 4, .K = 256, .V = 256, .dtype = bf16}, {"fast", "accurate"});
  gpu({.B = 64, .T = 512, .H = 8, .K = 64, .V = 64, .dtype = bf16}, {"fast", "accurate", "exact"});
  for (const auto& [B, T, N, H] : {std::tuple{256, 64, 1, 4}, {1024, 128, 2, 12}}) {
    gpu({.B = B, .T = T, .N = N, .H = H, .K = 32, .V = 32, .dtype = fp32}, {"exact"});
    gpu({.B = B, .T = T, .N = N, .H = H, .K = 32, .V = 32, .dtype = bf16}, {"accurate", "exact"});
  }
  return out;
}

}  // namespace lrnn::ops
