#include "ops/draw_token/draw_token.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/torch.h"
#include "tests/ops/draw_token_cases.h"

namespace lrnn::ops {
namespace {

TEST(DrawTokens, EqualsTheDefinition) {
  for_draws([](const torch::Tensor& logits, const torch::Tensor& u, const Drawing& how) {
    const auto got = draw_tokens(logits, u, how), want = draw_tokens_definition(logits, u, how);
    EXPECT_TRUE(torch::equal(got, want)) << logits.sizes() << "\n" << got << want;
  });
}

TEST(DrawTokens, SaysWhatItCannotRead) {
  const auto logits = torch::zeros({3, 5});
  const auto u = [](int64_t n) { return torch::zeros(n, torch::kFloat64); };
  EXPECT_THROW(draw_tokens(logits, u(2), {}), Error);
  EXPECT_THROW(draw_tokens(logits, torch::zeros(3), {}), Error);
  EXPECT_THROW(draw_tokens(torch::zeros({3, 0}), u(3), {}), Error);
  EXPECT_THROW(draw_tokens(logits, u(3), {.temperature = -1}), Error);
  EXPECT_THROW(draw_tokens(logits, u(3), {.top_p = 0}), Error);
}

}  // namespace
}  // namespace lrnn::ops
