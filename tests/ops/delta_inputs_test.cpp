#include "ops/delta_inputs/delta_inputs.h"

#include <gtest/gtest.h>

#include "ops/torch.h"
#include "tests/ops/same.h"

namespace lrnn::ops {
namespace {

using torch::Tensor;

Tensor random(at::IntArrayRef shape) { return torch::randn(shape, torch::kFloat64); }

constexpr int64_t B = 2, T = 7, N = 2, H = 3, K = 4, V = 5, W = 3;
const std::vector<int64_t> kSizes = {H * K, N* H* K, N* H* V};

// x: q, k, v, their convolutions, and maybe their states.
DeltaInputs made(const TensorVector& x, const std::string& activation, const std::string& norm) {
  DeltaInputs in{.q = x[0], .k = x[1], .v = x[2], .N = N, .H = H, .K = K, .V = V};
  in.qk_activation = activation, in.v_activation = activation == "silu" ? "silu" : "none";
  in.qk_norm = norm;
  if (x.size() > 3) in.conv.parts = {x[3], x[4], x[5]};
  if (x.size() > 6) in.states = {x[6], x[7], x[8]};
  return in;
}

TensorVector listed(const DeltaInputsResult& out) {
  TensorVector all = {out.q, out.k, out.v};
  for (const auto& state : out.states)
    if (state.defined()) all.push_back(state);
  return all;
}

TensorVector inputs(bool conv, bool state) {
  TensorVector out;
  for (const int64_t size : kSizes) out.push_back(random({B, T, size}));
  if (conv)
    for (const int64_t size : kSizes) out.push_back(random({size, 1, W}));
  if (state)
    for (const int64_t size : kSizes) out.push_back(random({B, size, W}));
  return out;
}

TEST(DeltaInputs, AreTheirDefinition) {
  torch::manual_seed(1);
  for (const char* activation : {"silu", "relu", "elu", "none"})
    for (const char* norm : {"l2", "none"})
      for (const auto& [conv, state] : {std::pair(false, false), {true, false}, {true, true}}) {
        SCOPED_TRACE(cat(activation, " ", norm, " ", conv, " ", state));
        const auto run = [&, conv = conv](const TensorVector& x, bool one, auto f) {
          DeltaInputs in = made(x, activation, norm);
          if (one) {
            in.qkv = torch::cat({in.q, in.k, in.v}, -1);
            in.q.reset(), in.k.reset(), in.v.reset();
          } else if (!conv) {
            in.q = in.q.unflatten(-1, {H, K});
            in.k = in.k.unflatten(-1, {N, H, K}), in.v = in.v.unflatten(-1, {N, H, V});
          }
          return listed(f(in));
        };
        const auto x = inputs(conv, state);
        const auto want = values_and_gradients(
            x, [&](const TensorVector& in) { return run(in, false, delta_inputs_definition); });
        // Each by itself, and as one tensor, which is how a GPU has them.
        for (const bool one : {false, true})
          expect_same(values_and_gradients(
                          x, [&](const TensorVector& in) { return run(in, one, delta_inputs); }),
                      want, 1e-10);
      }
}

// q from the last W rows of each sequence is q at the last row of each.
TEST(DeltaInputs, QAtTheEndsIsTheLastOfAll) {
  torch::manual_seed(2);
  for (const bool state : {false, true}) {
    const auto x = inputs(true, state);
    DeltaInputs in = made(x, "silu", "l2");
    const auto whole = delta_inputs(in);
    in.q = x[0].slice(1, T - W), in.lengths = torch::tensor({T});
    const auto ends = delta_inputs(in);
    EXPECT_CLOSE("q", ends.q[0], whole.q.select(1, -1));
    EXPECT_CLOSE("k", ends.k, whole.k);
    EXPECT_CLOSE("state", ends.states[0], whole.states[0]);
  }
}

}  // namespace
}  // namespace lrnn::ops
