#include "kernels/cuda/delta_product/choose.h"

#include <gtest/gtest.h>

// The choice of a kernel of the delta product is made on the host, so it is tested without a GPU.
// What fits is the kernels' to say; here it is a matter of sizes.
namespace lrnn::kernels::cuda {

bool small_fits(const DeltaProductInputs& p) { return p.K <= 32 && p.V <= 32; }
bool chunk_fits(const DeltaProductInputs& p, bool) { return p.type == Type::kBFloat16; }
bool one_chunk_fits(const DeltaProductInputs& p) { return !p.log_gate && p.T * p.N <= 80; }
bool channel_chunk_fits(const DeltaProductInputs& p) { return p.type == Type::kBFloat16; }
bool hopper_fits(const DeltaProductInputs& p) { return p.type == Type::kBFloat16; }

namespace {

// One sequence with four heads.
DeltaProductInputs problem(int64_t T, int64_t size, bool gate) {
  static const float kGate = 0;
  DeltaProductInputs p;
  p.type = Type::kBFloat16;
  p.B = p.S = 1, p.T = T, p.N = 1, p.H = 4, p.K = p.V = size;
  if (gate) p.log_gate = &kGate;
  return p;
}

// A gate of 1 forgets nothing, so that there is a gate says nothing about what is needed.
TEST(Choose, TheDefaultIsAccurateWithAGateOrWithout) {
  for (const int64_t T : {100, 512, 4096})
    for (const int64_t size : {16, 32, 64, 128})
      for (const bool gate : {false, true}) {
        const auto p = problem(T, size, gate);
        EXPECT_EQ(choose(p, ""), choose(p, "accurate")) << T << " " << size << " " << gate;
        EXPECT_NE(choose(p, ""), Method::kFast);
      }
  EXPECT_EQ(choose(problem(512, 128, true), ""), Method::kAccurate);
  EXPECT_EQ(choose(problem(512, 32, true), ""), Method::kSmall);
  EXPECT_EQ(choose(problem(2048, 32, true), ""), Method::kAccurate);
}

TEST(Choose, FastIsForThoseWhoAsk) {
  EXPECT_EQ(choose(problem(512, 128, true), "fast"), Method::kFast);
  EXPECT_EQ(choose(problem(512, 128, false), "fast"), Method::kFast);
  EXPECT_EQ(choose(problem(512, 128, true), "exact"), Method::kExact);
}

TEST(Choose, ByTypeAndSize) {
  auto p = problem(64, 128, false);
  EXPECT_EQ(choose(p, ""), Method::kOneChunk);
  p.type = Type::kFloat32;
  EXPECT_EQ(choose(p, "fast"), Method::kExact);
  p = problem(64, 32, true);
  p.B = p.S = 128;
  EXPECT_EQ(choose(p, "fast"), Method::kSmallChunks);
  EXPECT_EQ(choose(problem(10, 128, true), "fast"), Method::kExact);
}

TEST(Choose, GatesOfKeyChannelsHaveChunksOfTheirOwn) {
  auto p = problem(512, 128, true);
  p.channels = true;
  EXPECT_EQ(choose(p, ""), Method::kAccurateChannels);
  EXPECT_EQ(choose(p, "fast"), Method::kFastChannels);
  EXPECT_EQ(choose(p, "exact"), Method::kExact);
  p.T = 32;
  EXPECT_EQ(choose(p, "fast"), Method::kExact);
}

// A block a head: with few heads most of the chip would wait.
TEST(Choose, OneKernelForManyHeads) {
  auto p = problem(4096, 128, false);
  static float queries = 0;
  p.q.data = &queries;
  p.S = p.B = 25;  // 100 heads
  EXPECT_TRUE(choose_fused(p, Method::kFast, {}, 132));
  EXPECT_FALSE(choose_fused(p, Method::kAccurate, {}, 132));
  p.S = p.B = 24;
  EXPECT_FALSE(choose_fused(p, Method::kFast, {}, 132));
  p.S = p.B = 25, p.V = 64;
  EXPECT_FALSE(choose_fused(p, Method::kFast, {}, 132));
}

TEST(Choose, TwoKernelsForGatesAndManyHouseholders) {
  auto p = problem(4096, 128, true);
  static float queries = 0;
  p.q.data = &queries, p.S = p.B = 25;
  for (const int64_t N : {1, 2, 3, 4}) {
    p.N = N;
    EXPECT_EQ(choose_fused(p, Method::kFast, {}, 132), N <= 2) << N;
  }
  p.log_gate = nullptr;
  EXPECT_TRUE(choose_fused(p, Method::kFast, {}, 132)) << "without gates any number";
}

}  // namespace
}  // namespace lrnn::kernels::cuda
