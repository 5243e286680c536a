#include "ops/read_at/read_at.h"

#include <gtest/gtest.h>

#include "ops/delta_product/case.h"
#include "ops/diagonal/case.h"
#include "ops/selective_scan/case.h"
#include "ops/short_conv/case.h"
#include "ops/slstm/case.h"
#include "ops/torch.h"
#include "tests/close.h"

// Recurrences that are read at some rows only.
namespace lrnn::ops {
namespace {

TEST(ReadAt, KnowsTheEndsOfSequences) {
  const auto rows = [](std::vector<int64_t> at) { return torch::tensor(at); };
  EXPECT_TRUE(are_ends(rows({4, 9}), {}, 2, 5));
  EXPECT_FALSE(are_ends(rows({4, 8}), {}, 2, 5));
  EXPECT_FALSE(are_ends(rows({9}), {}, 2, 5));
  EXPECT_TRUE(are_ends(rows({0, 3, 9}), rows({0, 1, 4, 10}), 1, 10));
  EXPECT_FALSE(are_ends(rows({0, 4, 9}), rows({0, 1, 4, 10}), 1, 10));
  EXPECT_FALSE(are_ends(rows({0, 0, 9}), rows({0, 1, 1, 10}), 1, 10)) << "an empty one has no end";
}

const std::vector<Tensor> kRows = {torch::tensor({6, 13}), torch::tensor({0, 6, 7, 12})};

// From queries everywhere and at the rows alone, with the gradients of everything.
template <class In> void expect_rows(const In& in, Tensor In::*query, OpFunction<In> op) {
  for (const Tensor& rows : kRows)
    for (const bool everywhere : {true, false}) {
      const auto read = [&](const Tensors& x) -> Tensors {
        In at = with(in, x);
        at.read_at = rows;
        if (!everywhere) at.*query = at_rows(at.*query, rows);
        const auto out = op(at);
        return {{"o", out.o}, {"state", out.state}};
      };
      const auto want = [&](const Tensors& x) -> Tensors {
        const auto out = op(with(in, x));
        return {{"o", out.o.flatten(0, 1).index_select(0, rows).unsqueeze(0)},
                {"state", out.state}};
      };
      const Tensors a = ops::everything(named(in), read), b = ops::everything(named(in), want);
      for (const auto& [name, x] : b) EXPECT_CLOSE(cat(In::kName, " ", name), a.at(name), x);
    }
}

TEST(ReadAt, OfARecurrenceIsItsRows) {
  expect_rows(make_delta_product({.T = 7, .gate = true}, torch::kFloat64), &DeltaProduct::q,
              delta_product);
  expect_rows(make_delta_product({.T = 7, .gate = true, .channels = true}, torch::kFloat64),
              &DeltaProduct::q, delta_product);
  expect_rows(make_delta_product({.T = 7, .H = 6, .key_heads = 2}, torch::kFloat64),
              &DeltaProduct::q, delta_product);
  expect_rows(make_gla({.T = 7}, torch::kFloat64), &GatedLinearAttention::q,
              gated_linear_attention);
  expect_rows(make_rwkv7({.T = 7}, torch::kFloat64), &Rwkv7::r, rwkv7);
}

TEST(ReadAt, OfASelectiveScanIsItsRows) {
  const auto random = [](at::IntArrayRef shape) { return torch::randn(shape, torch::kFloat64); };
  SelectiveScan in;
  in.u = random({2, 7, 5}), in.delta = random({2, 7, 5}), in.A = -random({5, 3}).abs();
  in.B = random({2, 7, 3}), in.C = random({2, 7, 3}), in.D = random({5}), in.z = random({2, 7, 5});
  for (const Tensor& rows : kRows) {
    SelectiveScan at = in;
    at.read_at = rows, at.u_at = at_rows(in.u, rows);
    at.C = at_rows(in.C, rows), at.z = at_rows(in.z, rows);
    const auto got = selective_scan(at), want = selective_scan(in);
    EXPECT_CLOSE("y", got.y, at_rows(want.y, rows));
    EXPECT_CLOSE("state", got.state, want.state);
  }
}

TEST(ReadAt, OfAnSlstmIsItsRows) {
  Slstm in;
  in.wx = torch::randn({2, 7, 2, 4, 3}, torch::kFloat64);
  in.R = torch::randn({2, 3, 4, 3}, torch::kFloat64);
  for (const Tensor& rows : kRows) {
    Slstm at = in;
    at.read_at = rows;
    EXPECT_CLOSE("h", slstm(at).h, at_rows(slstm(in).h, rows));
  }
}

// From windows of W inputs, for sequences longer and shorter than they are.
TEST(ReadAt, TheEndsOfAShortConvAreTheLastRows) {
  const int64_t W = 4;
  for (const int64_t T : {1, 3, 9})
    for (const bool state : {false, true}) {
      ShortConv in = make_short_conv({.B = 2, .T = T, .D = 5, .W = W}, torch::kFloat64);
      if (!state) in.state.reset();
      const auto want = short_conv(in);
      ShortConv window = in;
      window.x = torch::cat({torch::zeros({2, W, 5}, torch::kFloat64), in.x}, 1).slice(1, -W);
      const auto got = short_conv_ends(window, torch::tensor({T}));
      EXPECT_CLOSE("y", got.y[0], want.y.select(1, -1));
      EXPECT_CLOSE("state", got.state, want.state);
    }
}

}  // namespace
}  // namespace lrnn::ops
