#include "ops/linear_cross_entropy/case.h"
#include "ops/torch.h"
#include "tests/close.h"

namespace lrnn::ops {
namespace {

constexpr int64_t kLossChunk = LinearCrossEntropy::kRowsAtOnce;

LinearCrossEntropy loss_rows(int64_t R, int64_t V, torch::Dtype dtype, int64_t D = 12) {
  return make_linear_cross_entropy({.T = R, .D = D, .n = V}, dtype);
}

struct LossMade {
  Tensor loss, right, dh, dweight;
};
LossMade loss_made(LinearCrossEntropy in,
                   OpFunction<LinearCrossEntropy> op = linear_cross_entropy) {
  in.h = in.h.detach().clone().requires_grad_();
  in.weight = in.weight.detach().clone().requires_grad_();
  const auto out = op(in);
  out.loss.backward();
  return {out.loss.detach(), out.right.detach(), in.h.grad(), in.weight.grad()};
}
LossMade loss_defined(const LinearCrossEntropy& in) {
  return loss_made(in, linear_cross_entropy_definition);
}

void expect_same_loss(const LossMade& got, const LossMade& want, double limit) {
  EXPECT_CLOSE_TO("loss", got.loss, want.loss, limit);
  EXPECT_TRUE(torch::equal(got.right.to(torch::kFloat64), want.right.to(torch::kFloat64)));
  EXPECT_CLOSE_TO("dh", got.dh, want.dh, limit);
  EXPECT_CLOSE_TO("dweight", got.dweight, want.dweight, limit);
}

// One row, a vocabulary that fills no vector, whole chunks, and a row more.
TEST(LinearCrossEntropy, IsItsDefinitionForAnyNumberOfRows) {
  for (const int64_t R : {int64_t(1), int64_t(7), kLossChunk, kLossChunk + 1, 2 * kLossChunk + 3}) {
    const auto in = loss_rows(R, 37, torch::kFloat64);
    expect_same_loss(loss_made(in), loss_defined(in), 1e-12);
  }
  const auto wide = loss_rows(9, 50257, torch::kFloat64);
  expect_same_loss(loss_made(wide), loss_defined(wide), 1e-12);
}

TEST(LinearCrossEntropy, Bfloat16IsNearTheDefinitionInDouble) {
  auto in = loss_rows(kLossChunk + 70, 300, torch::kBFloat16, 64);
  const auto got = loss_made(in);
  in.h = in.h.to(torch::kFloat64), in.weight = in.weight.to(torch::kFloat64);
  const auto want = loss_defined(in);
  EXPECT_CLOSE_TO("loss", got.loss, want.loss, 2e-3);
  EXPECT_CLOSE_TO("dh", got.dh, want.dh, 4e-3);
  EXPECT_CLOSE_TO("dweight", got.dweight, want.dweight, 4e-3);
}

// The weights of a model are float32 where its products are bfloat16: no bits of theirs are lost
// when the parts of a sum are added up.
TEST(LinearCrossEntropy, WideWeightsHaveWideGradients) {
  auto in = loss_rows(3 * kLossChunk, 40, torch::kBFloat16, 16);
  in.share = 1;
  const auto narrow = loss_made(in);
  EXPECT_EQ(narrow.dweight.scalar_type(), torch::kBFloat16);
  in.weight = in.weight.to(torch::kFloat32);
  const auto wide = loss_made(in);
  EXPECT_EQ(wide.dweight.scalar_type(), torch::kFloat32);
  EXPECT_EQ(wide.dh.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(torch::equal(wide.loss, narrow.loss));
  EXPECT_TRUE(torch::equal(wide.dweight.to(torch::kBFloat16), narrow.dweight));
  // The sum of the parts, each in float32.
  Tensor sum = torch::zeros_like(wide.dweight);
  for (int64_t first = 0; first < 3 * kLossChunk; first += kLossChunk) {
    auto part = in;
    part.h = in.h.narrow(0, first, kLossChunk),
    part.target = in.target.narrow(0, first, kLossChunk);
    sum += loss_made(part).dweight;
  }
  EXPECT_CLOSE_TO("sum of parts", wide.dweight, sum, 1e-6);
}

TEST(LinearCrossEntropy, RowsWithoutATargetCountForNothing) {
  auto in = loss_rows(20, 11, torch::kFloat64);
  in.target.fill_(-1);
  in.target[3] = -100;  // as torch writes it
  const auto none = loss_made(in);
  EXPECT_EQ(none.loss.item<double>(), 0);
  EXPECT_EQ(none.right.item<double>(), 0);
  EXPECT_TRUE(torch::equal(none.dh, torch::zeros_like(none.dh)));
  EXPECT_TRUE(torch::equal(none.dweight, torch::zeros_like(none.dweight)));
  in.target[5] = 2;
  auto one = in;
  one.h = in.h.narrow(0, 5, 1), one.target = in.target.narrow(0, 5, 1);
  const auto alone = loss_made(one), among = loss_made(in);
  EXPECT_CLOSE_TO("loss", among.loss, alone.loss, 1e-14);
  EXPECT_CLOSE_TO("dweight", among.dweight, alone.dweight, 1e-13);
}

TEST(LinearCrossEntropy, SharesAndIncomingGradientsScale) {
  auto in = loss_rows(50, 13, torch::kFloat64);
  in.share = 1;
  const auto one = loss_made(in);
  in.h.requires_grad_(), in.weight.requires_grad_();
  in.share = 0.25;
  (3 * linear_cross_entropy(in).loss).backward();
  EXPECT_CLOSE_TO("dh", in.h.grad(), 0.75 * one.dh, 1e-14);
  EXPECT_CLOSE_TO("dweight", in.weight.grad(), 0.75 * one.dweight, 1e-14);
}

// Once more, on other threads: the same bits.
TEST(LinearCrossEntropy, SumsHaveOneOrder) {
  const auto in = loss_rows(kLossChunk + 300, 1500, torch::kFloat32, 24);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const auto a = loss_made(in);
  at::set_num_threads(2);
  const auto b = loss_made(in), c = loss_made(in);
  at::set_num_threads(before);
  for (const auto* other : {&b, &c}) {
    EXPECT_TRUE(torch::equal(a.loss, other->loss));
    EXPECT_TRUE(torch::equal(a.dh, other->dh));
  }
  EXPECT_TRUE(torch::equal(b.dweight, c.dweight));
}

TEST(LinearCrossEntropy, OfEqualLogitsTheFirstIsTheAnswer) {
  const Tensor h = torch::ones({2, 3}), weight = torch::ones({4, 3}),
               target = torch::tensor({0, 1}, torch::kInt32);
  const auto out = linear_cross_entropy({.h = h, .weight = weight, .target = target});
  EXPECT_EQ(out.right.item<double>(), 1);
  EXPECT_NEAR(out.loss.item<double>(), 2 * std::log(4.0), 1e-6);
}

TEST(LinearCrossEntropy, ScoresOfRowsAddUpToIt) {
  auto in = loss_rows(kLossChunk + 9, 41, torch::kFloat64);
  in.share = 1;
  const auto rows = score_rows(in.h, in.weight, in.target);
  const auto all = linear_cross_entropy(in);
  EXPECT_CLOSE_TO("loss", rows.loss.sum(), all.loss, 1e-12);
  EXPECT_EQ(rows.right.sum().item<double>(), all.right.item<double>());
  EXPECT_TRUE(rows.loss.masked_select(in.target.lt(0)).eq(0).all().item<bool>());
}

TEST(LinearCrossEntropy, SaysWhatDoesNotFit) {
  const auto message = [](const LinearCrossEntropy& in) -> std::string {
    try {
      linear_cross_entropy(in);
    } catch (const Error& e) {
      return e.what();
    }
    return "nothing";
  };
  auto in = loss_rows(6, 5, torch::kFloat32);
  in.target[2] = 5;
  EXPECT_NE(message(in).find("target 5 is not below V = 5"), std::string::npos) << message(in);
  in = loss_rows(6, 5, torch::kFloat32);
  in.weight = in.weight.narrow(1, 0, 7);
  EXPECT_NE(message(in).find("weight must be"), std::string::npos) << message(in);
  in = loss_rows(6, 5, torch::kFloat32);
  in.target = in.target.to(torch::kFloat32);
  EXPECT_NE(message(in).find("target is Float"), std::string::npos) << message(in);
}

}  // namespace
}  // namespace lrnn::ops
