#include <functional>

#include "base/error.h"
#include "ops/linears/linears.h"
#include "ops/norm/norm.h"
#include "ops/read_at/read_at.h"
#include "ops/swiglu/swiglu.h"
#include "ops/take/take.h"
#include "tests/close.h"
#include "tests/cuda/device.h"

// The row-wise ops and the rows of tables on the GPU, against their definitions on the CPU.
namespace lrnn {
namespace {

using torch::Tensor;
using Inputs = std::vector<Tensor>;
struct PointwiseOnGpu : OnGpu {};
struct TakeOnGpu : OnGpu {};

struct RowFunction {
  std::string name;
  std::function<Tensor(const Inputs&)> fused, definition;
  bool weight;
  size_t inputs;
};

const std::vector<RowFunction>& row_functions() {
  static const std::vector<RowFunction> all = {
      {"rms_norm", [](const Inputs& in) { return ops::rms_norm(in[0], in[1], 0.1); },
       [](const Inputs& in) { return ops::rms_norm_definition(in[0], in[1], 0.1); }, true, 2},
      {"l2_norm", [](const Inputs& in) { return ops::l2_norm(in[0], 0.1); },
       [](const Inputs& in) { return ops::l2_norm_definition(in[0], 0.1); }, false, 1},
      {"swiglu", [](const Inputs& in) { return ops::swiglu(in[0], in[1]); },
       [](const Inputs& in) { return ops::swiglu_definition(in[0], in[1]); }, false, 2},
      {"swiglu of one tensor", [](const Inputs& in) { return ops::swiglu(in[0]); },
       [](const Inputs& in) {
         const auto halves = in[0].chunk(2, -1);
         return ops::swiglu_definition(halves[0], halves[1]);
       },
       false, 1},
  };
  return all;
}

Inputs row_inputs(const RowFunction& f, std::vector<int64_t> size, torch::Dtype dtype) {
  torch::manual_seed(3);
  if (f.name == "swiglu of one tensor") size.back() *= 2;
  const auto rand = [&](at::IntArrayRef shape) {
    return (2 * torch::randn(shape, torch::kFloat64)).to(dtype);
  };
  Inputs in = {rand(size)};
  if (f.inputs == 2) in.push_back(f.weight ? rand({size.back()}) : rand(size));
  return in;
}

// Results and, for a fixed random weighting of them, gradients. `layout` is applied on the device.
Inputs results(const std::function<Inputs(const Inputs&)>& f, const Inputs& in,
               torch::Device device, const std::function<Tensor(const Tensor&)>& layout = nullptr) {
  Inputs leaves, all;
  for (const Tensor& x : in) {
    const Tensor moved = x.detach().to(device);
    leaves.push_back((layout ? layout(moved) : moved.clone()).detach().requires_grad_());
  }
  torch::manual_seed(99);
  Tensor loss = torch::zeros({}, torch::kFloat64);
  for (const Tensor& y : f(leaves)) {
    all.push_back(y.detach().cpu());
    loss = loss + (y.cpu().to(torch::kFloat64) * torch::randn(y.sizes(), torch::kFloat64)).sum();
  }
  for (const auto& g : torch::autograd::grad({loss}, leaves)) all.push_back(g.cpu());
  return all;
}

std::function<Inputs(const Inputs&)> as_list(const std::function<Tensor(const Inputs&)>& f) {
  return [f](const Inputs& in) { return Inputs{f(in)}; };
}

TEST_F(PointwiseOnGpu, AgreesWithTheDefinition) {
  for (const auto& f : row_functions())
    for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
      for (const int64_t D : {1, 3, 8, 17, 32, 100, 128, 264, 1030})
        for (const std::vector<int64_t>& size :
             {std::vector<int64_t>{D}, {7, D}, {2, 3, 4, D}, {600, D}}) {
          const Inputs in = row_inputs(f, size, dtype);
          Inputs exact;
          for (const auto& x : in) exact.push_back(x.to(torch::kFloat64));
          const auto want = results(as_list(f.definition), exact, torch::kCPU),
                     got = results(as_list(f.fused), in, torch::kCUDA),
                     again = results(as_list(f.fused), in, torch::kCUDA);
          for (size_t i = 0; i < want.size(); ++i) {
            EXPECT_CLOSE_TO(cat(f.name, " ", in[0].sizes(), " result ", i), got[i], want[i],
                            tolerance(dtype));
            EXPECT_TRUE(torch::equal(got[i], again[i])) << f.name;
          }
        }
}

TEST_F(PointwiseOnGpu, StridesDoNotMatter) {
  for (const auto& f : row_functions()) {
    const auto in = row_inputs(f, {6, 5, 24}, torch::kFloat32);
    const auto want = results(as_list(f.fused), in, torch::kCUDA);
    for (const std::function<Tensor(const Tensor&)>& layout :
         std::vector<std::function<Tensor(const Tensor&)>>{
             [](const Tensor& x) {
               return torch::cat({x, x}, -1).slice(-1, 0, x.size(-1));
             },
             [](const Tensor& x) {
               return torch::cat({x, x}, -1).slice(-1, 0, x.size(-1));
             },
             [](const Tensor& x) { return x.transpose(0, -1).contiguous().transpose(0, -1); }}) {
      const auto got = results(as_list(f.fused), in, torch::kCUDA, layout);
      for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(torch::equal(got[i], want[i])) << f.name;
    }
  }
}

TEST_F(PointwiseOnGpu, NoRows) {
  for (const auto& f : row_functions()) {
    const auto all =
        results(as_list(f.fused), row_inputs(f, {0, 16}, torch::kFloat32), torch::kCUDA);
    EXPECT_EQ(all[0].sizes(), (std::vector<int64_t>{0, 16})) << f.name;
    EXPECT_TRUE(all.back().isfinite().all().item<bool>());
  }
}

// Elements whose numbers do not fit 32 bits.
TEST_F(PointwiseOnGpu, PastTwoToThe31) {
  const int64_t rows = (int64_t(1) << 31) / 1024 + 5;
  const auto on = torch::TensorOptions(torch::kCUDA).dtype(torch::kBFloat16);
  const torch::NoGradGuard no_grad;
  Tensor x = torch::ones({rows, 1024}, on);
  x[-1].fill_(2);
  EXPECT_EQ(ops::l2_norm(x, 0)[-1][-1].item<float>(), 0.03125f);
  EXPECT_NEAR(ops::swiglu(x, x)[-1][-1].item<float>(), 3.5232f, 2e-2);
}

TEST_F(TakeOnGpu, RowsAndTheirGradientsAreTheCpus) {
  for (const int64_t rows : {1, 5, 12, 16, 48, 49, 300})
    for (const auto dtype : {torch::kFloat32, torch::kBFloat16, torch::kFloat64}) {
      torch::manual_seed(2);
      const Tensor index = torch::randint(-1, rows, {3, 401}, torch::kInt64);
      const auto random = [&](std::vector<int64_t> sizes) {
        return torch::randn(sizes, torch::kFloat64).to(dtype);
      };
      const Inputs tables = {random({rows, 7}), random({rows, 2, 64}), random({rows}),
                             random({rows, 576})};
      const auto f = [&](const Inputs& in) { return ops::take(in, index.to(in[0].device())); };
      const auto want = results(f, tables, torch::kCPU), got = results(f, tables, torch::kCUDA),
                 again = results(f, tables, torch::kCUDA);
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_CLOSE_TO(cat("rows ", rows, " result ", i), got[i], want[i],
                        i < tables.size() ? 0 : tolerance(dtype));
        EXPECT_TRUE(torch::equal(got[i], again[i]));
      }
    }
}

TEST_F(TakeOnGpu, AnIndexOnTheCpuAndOneBeyondTheTable) {
  const Tensor table = torch::arange(6, torch::kFloat32).view({3, 2}).to(torch::kCUDA);
  const auto rows = ops::take({table}, torch::tensor({2, -1, 3}, torch::kInt64))[0].cpu();
  EXPECT_TRUE(torch::equal(rows[0], torch::tensor({4.f, 5.f})));
  EXPECT_TRUE(torch::equal(rows[1], torch::zeros({2})));
  EXPECT_TRUE(rows[2].isnan().all().item<bool>());
}

TEST_F(TakeOnGpu, ProductsFollow) {
  torch::manual_seed(4);
  const auto random = [](std::vector<int64_t> sizes) {
    return torch::randn(sizes, torch::kFloat64);
  };
  const auto f = [](const Inputs& in) {
    auto out = ops::linears(in[0], {in[1], in[2]});
    out.push_back(ops::read_state(in[3], in[4], 0.3));
    return out;
  };
  const Inputs in = {random({2, 7, 6}), random({4, 6}), random({1, 6}), random({3, 2, 4}),
                     random({3, 2, 4, 5})};
  const auto want = results(f, in, torch::kCPU), got = results(f, in, torch::kCUDA);
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_CLOSE_TO(std::to_string(i), got[i], want[i], 1e-12);
}

}  // namespace
}  // namespace lrnn
