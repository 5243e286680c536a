#include <ATen/Parallel.h>

#include <functional>

#include "base/error.h"
#include "ops/norm/norm.h"
#include "ops/swiglu/swiglu.h"
#include "ops/torch.h"
#include "tests/close.h"

namespace lrnn::ops {
namespace {

using torch::Tensor;
using Inputs = std::vector<Tensor>;

// One of the functions, fused and as defined, and the inputs it takes.
struct Function {
  std::string name;
  std::function<Tensor(const Inputs&)> fused, definition;
  bool weight;  // the second input is a row, not a tensor like the first
  size_t inputs;
};

// eps is large because the gradient of a norm of one number is nothing but eps.
const std::vector<Function>& functions() {
  static const std::vector<Function> all = {
      {"rms_norm", [](const Inputs& in) { return rms_norm(in[0], in[1], 0.1); },
       [](const Inputs& in) { return rms_norm_definition(in[0], in[1], 0.1); }, true, 2},
      {"l2_norm", [](const Inputs& in) { return l2_norm(in[0], 0.1); },
       [](const Inputs& in) { return l2_norm_definition(in[0], 0.1); }, false, 1},
      {"swiglu", [](const Inputs& in) { return swiglu(in[0], in[1]); },
       [](const Inputs& in) { return swiglu_definition(in[0], in[1]); }, false, 2},
      {"swiglu of one tensor", [](const Inputs& in) { return swiglu(in[0]); },
       [](const Inputs& in) { return swiglu_definition(in[0]); }, false, 1},
  };
  return all;
}

Inputs random_inputs(const Function& f, std::vector<int64_t> size, torch::Dtype dtype) {
  torch::manual_seed(3);
  if (f.name == "swiglu of one tensor") size.back() *= 2;
  const auto rand = [&](at::IntArrayRef shape) {
    return (2 * torch::randn(shape, torch::kFloat64)).to(dtype).requires_grad_();
  };
  Inputs in = {rand(size)};
  if (f.inputs == 2) in.push_back(f.weight ? rand({size.back()}) : rand(size));
  return in;
}

Inputs everything(const std::function<Tensor(const Inputs&)>& f, const Inputs& in) {
  const Tensor y = f(in);
  torch::manual_seed(99);
  const Tensor loss = (y.to(torch::kFloat64) * torch::randn(y.sizes(), torch::kFloat64)).sum();
  Inputs all = {y};
  for (auto& g : torch::autograd::grad({loss}, in)) all.push_back(g);
  return all;
}

void expect_agreement(const Function& f, const Inputs& in) {
  Inputs exact;
  for (const auto& t : in) exact.push_back(t.detach().to(torch::kFloat64).requires_grad_());
  const auto got = everything(f.fused, in), want = everything(f.definition, exact);
  for (size_t i = 0; i < got.size(); ++i) {
    if (i > 0) {
      EXPECT_EQ(got[i].scalar_type(), in[i - 1].scalar_type());
    }
    EXPECT_TRUE(close_(cat(f.name, " ", in[0].sizes(), " result ", i), got[i], want[i],
                       tolerance(in[0].scalar_type())));
  }
}

TEST(Pointwise, AgreesWithTheDefinition) {
  for (const auto& f : functions())
    for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
      for (const int64_t D : {1, 3, 8, 16, 17, 32, 33, 100, 128})
        for (const std::vector<int64_t>& size :
             {std::vector<int64_t>{D}, {1, D}, {7, D}, {2, 3, 4, D}, {400, D}})
          expect_agreement(f, random_inputs(f, size, dtype));
}

TEST(Pointwise, NoRows) {
  for (const auto& f : functions()) {
    const auto in = random_inputs(f, {0, 16}, torch::kFloat32);
    const auto all = everything(f.fused, in);
    EXPECT_EQ(all[0].sizes(), (std::vector<int64_t>{0, 16})) << f.name;
    EXPECT_TRUE(all.back().isfinite().all().item<bool>());
  }
}

TEST(Pointwise, WeightMayStayInFloat32) {
  auto in = random_inputs(functions()[0], {50, 33}, torch::kBFloat16);
  in[1] = torch::randn({33}, torch::requires_grad());
  EXPECT_EQ(rms_norm(in[0], in[1], 1e-6).scalar_type(), torch::kBFloat16);
  expect_agreement(functions()[0], in);
}

TEST(Pointwise, StridesDoNotMatter) {
  for (const auto& f : functions()) {
    const auto in = random_inputs(f, {6, 5, 24}, torch::kFloat32);
    const auto want = everything(f.fused, in);
    const std::vector<std::function<Tensor(const Tensor&)>> layouts = {
        [](const Tensor& x) {
          return torch::cat({x, x}, -1).slice(-1, 0, x.size(-1));
        },
        [](const Tensor& x) { return x.transpose(0, -1).contiguous().transpose(0, -1); },
        [](const Tensor& x) {
          return torch::stack({x, x}, -1).select(-1, 1);
        },
        [](const Tensor& x) {
          return x.dim() < 3 ? x : x.transpose(0, 1).contiguous().transpose(0, 1);
        }};
    for (const auto& layout : layouts) {
      Inputs other;
      for (const auto& t : in) other.push_back(layout(t.detach()).requires_grad_());
      const auto got = everything(f.fused, other);
      for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(got[i].equal(want[i])) << f.name;
    }
    // The gradient of a sum is a zero-stride ones.
    const auto got = torch::autograd::grad({f.fused(in).sum()}, in);
    const auto ones = torch::autograd::grad({f.definition(in).sum()}, in);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_CLOSE_TO(f.name, got[i], ones[i], 2e-5);
  }
}

TEST(Pointwise, SameBitsForAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  for (const auto& f : functions()) {
    const auto in = random_inputs(f, {1500, 96}, torch::kFloat32);
    at::set_num_threads(1);
    const auto want = everything(f.fused, in);
    for (const int threads : {2, 3, 4}) {
      at::set_num_threads(threads);
      const auto got = everything(f.fused, in);
      for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(got[i].equal(want[i])) << f.name;
    }
  }
  at::set_num_threads(before);
}

TEST(Pointwise, FiniteDifferences) {
  for (const auto& f : functions()) {
    const auto in = random_inputs(f, {4, 6}, torch::kFloat64);
    const auto value = [&] { return f.fused(in).sin().sum(); };
    const auto gradient = torch::autograd::grad({value()}, in);
    torch::NoGradGuard no_grad;
    for (size_t i = 0; i < in.size(); ++i) {
      const Tensor direction = torch::randn_like(in[i]);
      const double h = 1e-5;
      in[i].add_(direction, h);
      const double above = value().item<double>();
      in[i].add_(direction, -2 * h);
      const double below = value().item<double>();
      in[i].add_(direction, h);
      EXPECT_NEAR((above - below) / (2 * h), (gradient[i] * direction).sum().item<double>(), 1e-7)
          << f.name;
    }
  }
}

TEST(Pointwise, AZeroRowIsHarmless) {
  const Tensor x = torch::zeros({2, 8}, torch::requires_grad());
  const Tensor y = l2_norm(x, 1e-6);
  EXPECT_TRUE(y.equal(torch::zeros({2, 8})));
  EXPECT_CLOSE_TO("dx", torch::autograd::grad({y.sum()}, {x})[0], torch::full({2, 8}, 1e3), 1e-4);
}

// A second derivative is not written; asking for it must not give a wrong number.
TEST(Pointwise, SecondDerivativesAreRefused) {
  for (const auto& f : functions()) {
    const auto in = random_inputs(f, {3, 4}, torch::kFloat64);
    EXPECT_ANY_THROW({
      const auto first = torch::autograd::grad({f.fused(in).square().sum()}, in, {}, true, true);
      torch::autograd::grad({first[0].sum()}, in);
    }) << f.name;
  }
}

TEST(Pointwise, ErrorsSayWhatMustHold) {
  const auto error_of = [](const std::function<void()>& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  const Tensor x = torch::randn({3, 4});
  EXPECT_EQ(error_of([&] { rms_norm(x, torch::ones({3}), 0); }),
            "[rms_norm] weight must be [4] = [D], got [3]");
  EXPECT_EQ(error_of([&] { l2_norm(torch::ones({}), 0); }),
            "[l2_norm] x must have at least one dimension");
  EXPECT_EQ(error_of([&] {
              swiglu(x, torch::randn({4, 3}));
            }),
            "[swiglu] up must be [3, 4] = [..,D], got [4, 3]");
  EXPECT_EQ(error_of([&] {
              swiglu(torch::randn({2, 5}));
            }),
            "[swiglu] one tensor must hold two halves side by side, got [2, 5]");
  EXPECT_NE(error_of([&] { l2_norm(x.to(torch::kInt), 0); }).find("x is Int"), std::string::npos);
}

}  // namespace
}  // namespace lrnn::ops
