#include "tests/cuda/delta_product_cuda_cases.h"

// Heads that share keys: the bits of repeated keys by every method (choose.h), so that all that is
// tested of those holds here. Against the definition they are in case.h, as every kernel is.
namespace lrnn {
namespace {

struct DeltaProductSharedKeysOnGpu : OnGpu {};

struct Asked {
  const char* method;
  Case c;
  std::vector<std::string> accuracies;
};

std::vector<Asked> asked() {
  const auto bf16 = torch::kBFloat16, fp32 = torch::kFloat32;
  const std::vector<std::string> exact = {"exact"}, chunks = {"fast", "accurate"};
  std::vector<Asked> out = {
      {"exact", {.B = 2, .T = 37, .N = 2, .H = 6, .K = 40, .V = 20, .key_heads = 2}, exact},
      {"exact",
       {.T = 37, .H = 4, .K = 130, .V = 9, .gate = true, .dtype = fp32, .key_heads = 1},
       exact},
      {"exact",
       {.T = 37, .H = 4, .K = 64, .V = 9, .gate = true, .dtype = bf16, .key_heads = 2},
       exact},
      {"small",
       {.B = 3, .T = 70, .N = 2, .H = 6, .K = 16, .V = 32, .dtype = fp32, .key_heads = 2},
       exact},
      {"small",
       {.T = 70, .H = 4, .K = 32, .V = 8, .gate = true, .dtype = bf16, .key_heads = 1},
       exact},
      {"small",
       {.T = 70, .H = 4, .K = 32, .V = 8, .gate = true, .dtype = fp32, .key_heads = 2},
       exact},
      {"small chunks",
       {.B = 64, .T = 40, .N = 2, .H = 12, .K = 32, .V = 16, .dtype = bf16, .key_heads = 4},
       {"accurate"}},
      {"one chunk",
       {.B = 2, .T = 37, .N = 2, .H = 6, .K = 48, .V = 112, .state = false, .dtype = bf16},
       {"accurate"}},
      {"mma.sync",
       {.B = 2, .T = 150, .N = 1, .H = 6, .K = 128, .V = 80, .gate = true, .dtype = bf16},
       chunks},
      {"mma.sync", {.B = 1, .T = 90, .N = 3, .H = 6, .K = 256, .V = 64, .dtype = bf16}, chunks},
      {"hopper", {.B = 2, .T = 150, .N = 1, .H = 6, .K = 128, .V = 128, .dtype = bf16}, chunks},
      {"hopper", {.B = 1, .T = 97, .N = 2, .H = 6, .K = 72, .V = 64, .dtype = bf16}, chunks},
      {"hopper, without outputs",
       {.B = 1, .T = 150, .N = 1, .H = 6, .K = 128, .V = 64, .q = false, .dtype = bf16},
       chunks},
      {"hopper, packed",
       {.B = 1, .T = 300, .H = 6, .K = 64, .V = 128, .dtype = bf16, .lengths = {100, 0, 193, 7}},
       chunks},
      {"segments", {.B = 1, .T = 2100, .H = 6, .K = 128, .V = 128, .dtype = bf16}, chunks},
      {"segments", {.B = 1, .T = 1111, .N = 2, .H = 6, .K = 64, .V = 64, .dtype = bf16}, chunks},
  };
  for (Asked& a : out)
    if (!a.c.key_heads) a.c.key_heads = 2;
  return out;
}

TEST_F(DeltaProductSharedKeysOnGpu, HaveTheBitsOfRepeatedOnes) {
  for (auto& [method, c, accuracies] : asked())
    for (const bool gate : {false, true})
      for (const auto& accuracy : accuracies) {
        Case one = c;
        one.gate = gate, one.accuracy = accuracy;
        SCOPED_TRACE(testing::Message() << method << ": " << one);
        const auto in = make_inputs(one);
        const auto got = everything(in, on_gpu);
        expect_bits_of_repeated(got, everything(repeated(in), on_gpu));
        if (gate) expect_same_bits(got, everything(in, on_gpu));
      }
}

// A step of decoding keeps nothing and has a kernel of its own (few_steps.cu).
TEST_F(DeltaProductSharedKeysOnGpu, DecodeWithTheBitsOfRepeatedOnes) {
  const torch::NoGradGuard no_grad;
  for (const int64_t K : {32, 128})
    for (const int64_t N : {1, 2}) {
      const Case c{.B = 3,
                   .T = 1,
                   .N = N,
                   .H = 6,
                   .K = K,
                   .V = 128,
                   .gate = true,
                   .dtype = torch::kBFloat16,
                   .key_heads = 2};
      SCOPED_TRACE(testing::Message() << c);
      const auto in = make_inputs(c);
      const auto got = on_gpu(in), want = on_gpu(repeated(in));
      EXPECT_TRUE(torch::equal(got.o, want.o));
      EXPECT_TRUE(torch::equal(got.state, want.state));
      EXPECT_CLOSE_TO("state", got.state, ops::delta_product_definition(in_double(in)).state, 1e-5);
    }
}

}  // namespace
}  // namespace lrnn
