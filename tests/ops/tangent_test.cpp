#include "base/error.h"
#include "ops/swiglu/swiglu.h"
#include "ops/torch.h"
#include "tests/ops/tangent_cases.h"

// Forward-mode derivatives of the ops. Below autograd a tangent is lost, and the derivative is zero
// without a word.
namespace lrnn {
namespace {

TEST(Tangent, OfEveryInputIsThatOfTheFunction) {
  for (const auto& c : tangent_cases()) expect_tangents(c.name, c.f, c.inputs);
}

// The gradient is linear in dy; where backward is a kernel of ours there is a sentence instead.
TEST(Tangent, OfAGradientIsRightOrRefused) {
  size_t refused = 0;
  for (const auto& c : tangent_cases()) {
    TensorVector leaves;
    for (const auto& x : c.inputs) leaves.push_back(x.detach().clone().requires_grad_());
    TensorVector dy;
    const TensorVector out = c.f(leaves);
    for (const auto& y : out) dy.push_back(torch::randn_like(y));
    const auto gradient = [&](const TensorVector& d) {
      return torch::autograd::grad(out, leaves, d, /*retain_graph=*/true, /*create_graph=*/false,
                                   /*allow_unused=*/true);
    };
    const TensorVector want = gradient(dy);
    TensorVector zeros;
    for (const auto& d : dy) zeros.push_back(torch::zeros_like(d));
    try {
      const TensorVector got = tangents_of(
          [&](const TensorVector& d) {
            TensorVector defined;
            for (const auto& g : gradient(d))
              if (g.defined()) defined.push_back(g);
            return defined;
          },
          zeros, dy);
      size_t at = 0;
      for (const auto& w : want)
        if (w.defined()) {
          EXPECT_CLOSE(c.name, got[at], w);
          ++at;
        }
    } catch (const std::exception& error) {
      const std::string said = error.what();
      EXPECT_TRUE(said.find("so its gradient has no tangent (jvp)") != std::string::npos ||
                  said.find("forward AD with lrnn::") != std::string::npos)
          << c.name << ": " << said;
      ++refused;
    }
  }
  EXPECT_GT(refused, 0U);
}

// The state of unit_conv has no gradient, but it has a tangent.
TEST(Tangent, OfTheStateOfUnitConv) {
  const auto random = [](at::IntArrayRef shape) { return torch::randn(shape, torch::kFloat64); };
  const TensorVector in = {random({2, 6, 4}), random({4, 1, 3}), random({2, 4, 3})};
  const auto f = [](const TensorVector& x) {
    return ops::unit_conv(
               {.x = x[0], .weight = x[1], .state = x[2], .sizes = {2, 2}, .units = 2, .group = 2})
        .y;
  };
  const TensorVector along = {{}, {}, random({2, 4, 3})};
  const TensorVector got = tangents_of(f, in, along), want = differences_of(f, in, along);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_CLOSE_TO("piece", got[i], want[i], 1e-6);
}

// Inputs that do not fit are told so whether they carry a tangent or not.
TEST(Tangent, InputsAreCheckedAllTheSame) {
  const auto ones = [](at::IntArrayRef shape) { return torch::ones(shape, torch::kFloat64); };
  const auto expect_error = [](const char* sentence, const TensorFunction& f,
                               const TensorVector& in) {
    TensorVector tangents;
    for (const auto& x : in) tangents.push_back(torch::ones_like(x));
    try {
      tangents_of(f, in, tangents);
      ADD_FAILURE() << "accepted: " << sentence;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(sentence), std::string::npos) << error.what();
    }
  };
  expect_error("[rms_norm] weight must be",
               [](auto& x) { return TensorVector{ops::rms_norm(x[0], x[1], 1e-6)}; },
               {ones({3, 4}), ones({5})});
  expect_error("[swiglu] up must be [3, 4]",
               [](auto& x) { return TensorVector{ops::swiglu(x[0], x[1])}; },
               {ones({3, 4}), ones({3, 5})});
  expect_error("[unit_conv] pieces of",
               [](auto& x) {
                 return ops::unit_conv({.x = x[0], .weight = x[1], .state = {}, .sizes = {3}}).y;
               },
               {ones({1, 2, 4}), ones({4, 1, 2})});
  expect_error("[delta_product] cu_seqlens must run from 0 to T = 5, got 0 to 4",
               [](auto& x) {
                 return TensorVector{ops::delta_product({.q = {},
                                                         .k = x[0],
                                                         .v = x[1],
                                                         .beta = x[2],
                                                         .log_gate = {},
                                                         .state = {},
                                                         .scale = {},
                                                         .cu_seqlens = torch::tensor({0, 4})})
                                         .state};
               },
               {ones({1, 5, 1, 1, 2}), ones({1, 5, 1, 1, 2}), ones({1, 5, 1, 1})});
}

}  // namespace
}  // namespace lrnn
