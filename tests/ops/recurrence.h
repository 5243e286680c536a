#pragma once
#include <functional>
#include <map>
#include <string>

#include "kernels/dispatch.h"
#include "ops/problem.h"
#include "ops/torch.h"
#include "tests/close.h"

// What every recurrent op is asked, whatever its inputs are called.
namespace lrnn::recurrence {

using ops::everything;
using ops::in_double;
using ops::Tensors;
using torch::Tensor;
using Function = ops::TensorFunction;

struct Op {
  Function kernel, definition;
};

inline Tensor get(const Tensors& in, const std::string& name) {
  const auto found = in.find(name);
  return found == in.end() ? Tensor() : found->second;
}

// The kernel on every instruction set of this machine, against the definition in double.
inline void expect_definition(const Op& op, const Tensors& in, double limit) {
  const kernels::Isa best = kernels::best_isa();
  const int threads = at::get_num_threads();
  at::set_num_threads(1);  // the definition's matrices are too small to share
  const Tensors want = everything(in_double(in), op.definition);
  at::set_num_threads(threads);
  for (const auto isa : kernels::kIsas) {
    if (!kernels::has_isa(isa)) continue;
    SCOPED_TRACE(kernels::name(isa));
    kernels::force_isa(isa);
    const Tensors got = everything(in, op.kernel);
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [name, x] : want) {
      EXPECT_CLOSE_TO(name, got.at(name), x, limit);
    }
  }
  kernels::force_isa(best);
}

inline void expect_same_bits(const Tensors& got, const Tensors& want) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, x] : want) EXPECT_TRUE(torch::equal(got.at(name), x)) << name;
}

inline void expect_same_bits_on_any_threads(const Op& op, const Tensors& in) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Tensors one = everything(in, op.kernel);
  at::set_num_threads(3);
  const Tensors three = everything(in, op.kernel);
  at::set_num_threads(threads);
  expect_same_bits(three, one);
}

// The gradients of the kernel along random directions, against differences of its outputs.
inline void expect_slopes(const Op& op, const Tensors& in) {
  const Tensors all = everything(in, op.kernel);
  const torch::NoGradGuard no_grad;
  const auto loss = [&](const Tensors& x) {
    torch::manual_seed(7);  // the weights of everything()
    double sum = 0;
    for (const auto& [name, y] : op.kernel(x))
      sum += (y * torch::randn(y.sizes(), torch::kFloat64)).sum().item<double>();
    return sum;
  };
  torch::manual_seed(9);
  for (const auto& [name, x] : in) {
    if (!x.is_floating_point()) continue;
    const Tensor direction = torch::randn_like(x);
    Tensors plus = in, minus = in;
    plus[name] = x + 1e-5 * direction, minus[name] = x - 1e-5 * direction;
    const double slope = (loss(plus) - loss(minus)) / 2e-5;
    const double want = (all.at("d" + name) * direction).sum().item<double>();
    EXPECT_NEAR(slope, want, 1e-6 * (1 + std::abs(want))) << name;
  }
}

}  // namespace lrnn::recurrence
