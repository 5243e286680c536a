#pragma once
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <vector>

#include "base/error.h"
#include "tests/close.h"

// Forward-mode derivatives: the tangents that a function gives, and those it should give.
namespace lrnn {

using TensorVector = std::vector<torch::Tensor>;
using TensorFunction = std::function<TensorVector(const TensorVector&)>;

struct DualLevel {
  uint64_t at = torch::autograd::forward_ad::enter_dual_level();
  DualLevel() = default;
  DualLevel(const DualLevel&) = delete;
  ~DualLevel() { torch::autograd::forward_ad::exit_dual_level(at); }
};

// Tangents of f(inputs), zeros where it gives none; an undefined tangent of an input is none.
inline TensorVector tangents_of(const TensorFunction& f, const TensorVector& inputs,
                                const TensorVector& tangents) {
  const DualLevel level;
  TensorVector duals = inputs, out;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (tangents[i].defined()) duals[i] = at::_make_dual(inputs[i], tangents[i], int64_t(level.at));
  for (const auto& y : f(duals)) {
    const auto tangent = y._fw_grad(level.at);
    out.push_back(tangent.defined() ? tangent.detach().clone() : torch::zeros_like(y.detach()));
  }
  return out;
}

// By central differences; for inputs in float64.
inline TensorVector differences_of(const TensorFunction& f, const TensorVector& inputs,
                                   const TensorVector& tangents) {
  const torch::NoGradGuard no_grad;
  const double h = 1e-6;
  const auto at = [&](double step) {
    TensorVector moved = inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (tangents[i].defined()) moved[i] = inputs[i] + step * tangents[i];
    return f(moved);
  };
  const TensorVector above = at(h), below = at(-h);
  TensorVector out;
  for (size_t i = 0; i < above.size(); ++i) out.push_back((above[i] - below[i]) / (2 * h));
  return out;
}

// The tangents of f for every input by itself, with gradients switched off, not asked for, and
// asked for: forward mode has nothing to do with requires_grad.
inline void expect_tangents(const std::string& name, const TensorFunction& f,
                            const TensorVector& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    TensorVector tangents(inputs.size()), leaves = inputs;
    tangents[i] = torch::randn_like(inputs[i]);
    const TensorVector want = differences_of(f, inputs, tangents);
    const auto expect = [&](const char* how, const TensorVector& got) {
      ASSERT_EQ(got.size(), want.size()) << name;
      for (size_t j = 0; j < got.size(); ++j)
        EXPECT_TRUE(close_(cat(name, ": output ", j, " along input ", i, how), got[j], want[j],
                           want[j].norm().item<double>() > 0 ? 1e-6 : 0));
    };
    expect("", tangents_of(f, inputs, tangents));
    {
      const torch::NoGradGuard no_grad;
      expect(" without gradients", tangents_of(f, inputs, tangents));
    }
    for (auto& x : leaves) x = x.detach().clone().requires_grad_();
    expect(" beside gradients", tangents_of(f, leaves, tangents));
  }
}

}  // namespace lrnn
