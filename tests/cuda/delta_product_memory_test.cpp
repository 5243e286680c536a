#include <ATen/DeviceAccelerator.h>

#include "tests/cuda/delta_product_cuda_cases.h"

// Which memory the kernels touch: nothing around their inputs and outputs, and all of it where
// offsets pass 2^31.
namespace lrnn {
namespace {

using torch::Tensor;
struct DeltaProductMemoryOnGpu : OnGpu {};

// The same tensor inside a buffer of NaNs, 4 KB of them on both sides.
struct Guarded {
  Tensor buffer, inside;
  static constexpr int64_t kSide = 4096;
  explicit Guarded(const Tensor& x) {
    const int64_t n = x.numel(), side = kSide / x.element_size();
    buffer = torch::full({n + 2 * side}, std::nan(""), x.options());
    inside = buffer.narrow(0, side, n).view(x.sizes());
    inside.copy_(x);
  }
  bool untouched() const {
    const int64_t side = kSide / buffer.element_size(), n = buffer.numel();
    return buffer.narrow(0, 0, side).isnan().all().item<bool>() &&
           buffer.narrow(0, n - side, side).isnan().all().item<bool>();
  }
};

// The allocator hands out multiples of 512 bytes: what lies between the end of a result and that of
// its block is still as it was when all free memory was filled, unless somebody wrote there.
constexpr int64_t kBlock = 512, kMark = 0xa5;

// For as many tensors of these sizes as there may be holes in the allocator's memory.
void fill_free_memory(const std::vector<Tensor>& like) {
  const auto bytes = torch::TensorOptions(torch::kCUDA).dtype(torch::kUInt8);
  std::vector<Tensor> all;
  for (const Tensor& x : like)
    for (int i = 0; i < 32; ++i)
      all.push_back(
          torch::full({(int64_t(x.nbytes()) + kBlock - 1) / kBlock * kBlock}, kMark, bytes));
}
bool ends_untouched(const Tensor& x) {
  const auto size = int64_t(x.nbytes()), left = (kBlock - size % kBlock) % kBlock;
  if (left == 0) return true;
  const auto bytes = torch::TensorOptions(torch::kCUDA).dtype(torch::kUInt8);
  const Tensor behind = torch::from_blob(static_cast<char*>(x.data_ptr()) + size, {left}, bytes);
  return behind.eq(kMark).all().item<bool>();
}

TEST_F(DeltaProductMemoryOnGpu, LeavesWhatLiesAroundItsTensorsAlone) {
  struct Named {
    Case c;
    const char* precision;
  };
  const std::vector<Named> all = {
      {{.B = 1, .T = 67, .N = 1, .H = 3, .K = 32, .V = 24, .gate = true, .dtype = torch::kFloat32},
       "exact"},
      {{.B = 1, .T = 67, .N = 2, .H = 3, .K = 40, .V = 40, .gate = true, .dtype = torch::kFloat32},
       "exact"},
      {{.B = 1, .T = 71, .N = 1, .H = 3, .K = 24, .V = 16, .gate = true, .dtype = torch::kBFloat16},
       "fast"},
      {{.B = 1,
        .T = 131,
        .N = 1,
        .H = 3,
        .K = 72,
        .V = 64,
        .gate = true,
        .dtype = torch::kBFloat16},
       "fast"},
      {{.B = 1, .T = 67, .N = 3, .H = 1, .K = 88, .V = 64, .dtype = torch::kBFloat16}, "accurate"},
      {{.B = 1,
        .T = 2105,
        .N = 1,
        .H = 1,
        .K = 120,
        .V = 128,
        .gate = true,
        .dtype = torch::kBFloat16},
       "accurate"},
      {{.B = 1, .T = 75, .N = 1, .H = 1, .K = 200, .V = 48, .dtype = torch::kBFloat16}, "accurate"},
      {{.B = 171,
        .T = 23,
        .N = 1,
        .H = 3,
        .K = 24,
        .V = 16,
        .gate = true,
        .dtype = torch::kBFloat16},
       "accurate"},
  };
  for (const auto& [c, precision] : all) {
    SCOPED_TRACE(testing::Message() << c << " " << precision);
    auto in = moved(make_inputs(c));
    in.accuracy = precision;
    in.beta = in.beta.to(torch::kFloat32);
    std::vector<Tensor*> leaves = {&in.q, &in.k, &in.v, &in.beta, &in.log_gate, &in.state};
    std::erase_if(leaves, [](Tensor* x) { return !x->defined(); });
    const auto run = [&](const Tensor& d_o, const std::vector<Tensor>& like) {
      std::vector<Tensor> inputs;
      for (Tensor* x : leaves) inputs.push_back(*x = x->detach().requires_grad_());
      fill_free_memory(like);
      const auto out = ops::delta_product(in);
      std::vector<Tensor> results = {out.o.detach(), out.state.detach()};
      fill_free_memory(like);
      for (const Tensor& g : torch::autograd::grad({out.o, out.state.sum()}, inputs, {d_o, {}}))
        results.push_back(g);
      return results;
    };
    const Tensor d_o = torch::randn({c.B, c.T, c.H, c.V}, in.v.options());
    const std::vector<Tensor> want = run(d_o, {});
    std::vector<Guarded> guards;
    for (Tensor* x : leaves) {
      guards.emplace_back(x->detach());
      *x = guards.back().inside;
    }
    guards.emplace_back(d_o);
    const std::vector<Tensor> got = run(guards.back().inside, want);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(torch::equal(got[i], want[i])) << i;
      EXPECT_TRUE(ends_untouched(got[i])) << i;
    }
    for (size_t i = 0; i < guards.size(); ++i) EXPECT_TRUE(guards[i].untouched()) << i;
  }
}

Tensor random(std::vector<int64_t> sizes, torch::Dtype dtype) {
  return torch::randn(sizes, torch::TensorOptions(torch::kCUDA).dtype(dtype));
}

// What forward and backward have alive at most beside their inputs, counted in rows of bfloat16
// [B,T,H,128]: o and dq are one, the errors, dk and dv N, the states 2 N, T half of N. The
// gradients of states lie where dk and dq will be; with two micro-steps a token a quarter of them
// does not fit there, N / 2 rows. P is made twice, or with a gate kept, half a row.
TEST_F(DeltaProductMemoryOnGpu, GradientsOfStatesLieWhereOthersWillBe) {
  struct Wanted {
    int64_t N;
    bool gate;
    double rows;
  };
  const int64_t B = 2, T = 1024, H = 70, D = 128;
  for (const auto& [N, gate, rows] : {Wanted{1, false, 7.5}, {1, true, 8}, {2, false, 14}}) {
    SCOPED_TRACE(testing::Message() << "N " << N << " gate " << gate);
    ops::DeltaProduct in;
    in.q = random({B, T, H, D}, torch::kBFloat16).mul_(0.09).requires_grad_();
    in.k = random({B, T, N, H, D}, torch::kBFloat16).mul_(0.09).requires_grad_();
    in.v = random({B, T, N, H, D}, torch::kBFloat16).requires_grad_();
    in.beta = torch::ones({B, T, N, H}, torch::kCUDA).requires_grad_();
    std::vector<Tensor> leaves = {in.q, in.k, in.v, in.beta};
    if (gate)
      leaves.push_back(in.log_gate = torch::zeros({B, T, H}, torch::kCUDA).requires_grad_());
    in.accuracy = "fast";
    const Tensor d_o = random({B, T, H, D}, torch::kBFloat16);
    const auto alive = [] { return at::accelerator::getDeviceStats(0).requested_bytes[0]; };
    at::accelerator::resetPeakStats(0);
    const auto before = alive().current;
    const auto out = ops::delta_product(in);
    const auto gradients = torch::autograd::grad({out.o}, leaves, {d_o});
    // Step sizes, gates and the vectors made of them are a tenth of a row.
    EXPECT_LT(double(alive().peak - before) - double(out.state.nbytes()),
              (rows + 0.2 * double(N)) * double(d_o.nbytes()));
  }
}

// A gate of zero 64 tokens before the end: what follows depends on nothing else, so that the end of
// the last sequence can be computed alone.
TEST_F(DeltaProductMemoryOnGpu, FollowsChunksPastTwoToThe31) {
  const int64_t B = 2, T = 1 << 18, H = 17, K = 64, V = 256, tail = 64;
  ops::DeltaProduct in;
  in.q = random({B, T, H, K}, torch::kBFloat16).mul_(0.125);
  in.k = random({B, T, 1, H, K}, torch::kBFloat16).mul_(0.1);
  in.v = random({B, T, 1, H, V}, torch::kBFloat16);
  ASSERT_GT(in.v.numel(), int64_t(1) << 31);
  in.beta = torch::ones({B, T, 1, H}, torch::kCUDA);
  in.log_gate = torch::full({B, T, H}, -0.05, torch::kCUDA);
  in.log_gate.select(1, T - tail).fill_(-std::numeric_limits<float>::infinity());
  in.accuracy = "fast";
  const Tensor d_o = random({B, T, H, V}, torch::kBFloat16);
  const auto end = [&](const Tensor& x) { return x.slice(0, B - 1).slice(1, T - tail); };
  auto last = in;
  for (Tensor* x : {&last.q, &last.k, &last.v, &last.beta, &last.log_gate}) *x = end(*x);
  const auto run = [](ops::DeltaProduct x, const Tensor& d) {
    std::vector<Tensor> inputs;
    for (Tensor* leaf : {&x.q, &x.k, &x.v, &x.beta})
      inputs.push_back(*leaf = leaf->detach().requires_grad_());
    const auto out = ops::delta_product(x);
    auto results = torch::autograd::grad({out.o}, inputs, {d});
    results.push_back(out.o.detach());
    return results;
  };
  const auto got = run(in, d_o), want = run(last, end(d_o));
  for (size_t i = 0; i < got.size(); ++i) EXPECT_CLOSE_TO("end", end(got[i]), want[i], 1e-6);
}

TEST_F(DeltaProductMemoryOnGpu, FollowsSmallHeadsPastTwoToThe31) {
  const int64_t B = 530000, T = 32, H = 4, K = 32, V = 32;
  torch::NoGradGuard no_grad;
  ops::DeltaProduct in;
  in.q = random({B, T, H, K}, torch::kBFloat16);
  in.k = random({B, T, 1, H, K}, torch::kBFloat16).mul_(0.17);
  in.v = random({B, T, 1, H, V}, torch::kBFloat16);
  ASSERT_GT(in.v.numel(), int64_t(1) << 31);
  in.beta = torch::ones({B, T, 1, H}, torch::kCUDA);
  in.accuracy = "exact";
  const Tensor o = ops::delta_product(in).o;
  auto last = in;
  for (Tensor* x : {&last.q, &last.k, &last.v, &last.beta}) *x = x->slice(0, B - 3);
  EXPECT_TRUE(torch::equal(o.slice(0, B - 3), ops::delta_product(last).o));
}

}  // namespace
}  // namespace lrnn
