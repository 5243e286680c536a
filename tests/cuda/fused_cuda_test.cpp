#include <ATen/autocast_mode.h>

#include "base/error.h"
#include "ops/gpu.h"
#include "ops/join/join.h"
#include "ops/linears/linears.h"
#include "ops/norm/norm.h"
#include "ops/take/take.h"
#include "ops/wide_sigmoid/wide_sigmoid.h"
#include "tests/close.h"
#include "tests/cuda/device.h"

// What an update on the GPU does in one launch instead of several, against the several.
namespace lrnn {
namespace {

using torch::Tensor;
using TensorList = std::vector<Tensor>;
struct FusedOnGpu : OnGpu {};

Tensor normal(at::IntArrayRef sizes, torch::Dtype dtype = torch::kFloat32) {
  return torch::randn(sizes, torch::kFloat64).to(torch::kCUDA, dtype);
}
Tensor leaf(const Tensor& x) { return x.detach().clone().requires_grad_(); }
Tensor wide(const Tensor& x) { return x.detach().to(torch::kCPU, torch::kFloat64); }

// The gradients of sum_i <outputs_i, given_i>.
TensorList gradients(const TensorList& outputs, const TensorList& inputs, const TensorList& given) {
  return torch::autograd::grad(outputs, inputs, given, /*retain_graph=*/true, false, true);
}

TEST_F(FusedOnGpu, ASumAndItsNorm) {
  torch::manual_seed(1);
  constexpr double kEps = 0.1;
  for (const int64_t D : {1, 7, 8, 20, 128, 200, 256, 300, 1024, 4100})
    for (const auto& rows : {std::vector<int64_t>{1, 1}, {3, 37}, {40, 257}})
      for (const auto y_type : {torch::kFloat32, torch::kBFloat16, torch::kFloat64})
        for (const bool both : {true, false}) {
          SCOPED_TRACE(cat(D, " ", rows[0], "x", rows[1], " ", y_type, " ", both));
          const bool with_y = y_type != torch::kFloat64;  // stands for none
          auto sizes = rows;
          sizes.push_back(D);
          const Tensor x = leaf(normal(sizes)), weight = leaf(normal({D}));
          const Tensor y = with_y ? leaf(normal(sizes, y_type)) : Tensor();
          const Tensor ds = normal(sizes), dh = normal(sizes);
          const auto [s, h] = ops::add_norm(x, y, weight, kEps, false);
          TensorList outs = {h}, given = {dh}, in = {x, weight};
          if (both) outs.push_back(with_y ? s : x * 1), given.push_back(ds);
          if (with_y) in.push_back(y);
          const auto got = gradients(outs, in, given);

          const Tensor X = wide(x).requires_grad_(), W = wide(weight).requires_grad_();
          const Tensor Y = with_y ? wide(y).requires_grad_() : Tensor();
          const Tensor S = with_y ? X + Y : X, H = ops::rms_norm_definition(S, W, kEps);
          TensorList want_outs = {H}, want_given = {wide(dh)}, want_in = {X, W};
          if (both) want_outs.push_back(with_y ? S : X * 1), want_given.push_back(wide(ds));
          if (with_y) want_in.push_back(Y);
          const auto want = gradients(want_outs, want_in, want_given);
          EXPECT_CLOSE("s", s, S);
          EXPECT_CLOSE("h", h, H);
          for (size_t i = 0; i < want.size(); ++i)
            EXPECT_CLOSE(cat("gradient ", i), got[i], want[i]);
        }
}

TEST_F(FusedOnGpu, TheNormHasTheTypeOfTheProducts) {
  torch::manual_seed(2);
  constexpr double kEps = 0.1;
  for (const int64_t D : {24, 32, 64, 128, 256, 520, 768, 2048, 4096}) {
    SCOPED_TRACE(D);
    const auto many = [&](torch::Dtype dtype) { return normal({40, 257, D}, dtype); };
    const Tensor x = leaf(many(torch::kFloat32)), y = leaf(many(torch::kBFloat16)),
                 weight = leaf(normal({D})), dh = many(torch::kBFloat16),
                 ds = many(torch::kFloat32);
    at::autocast::set_autocast_dtype(torch::kCUDA, at::kBFloat16);
    at::autocast::set_autocast_enabled(torch::kCUDA, true);
    const auto [s, h] = ops::add_norm(x, y, weight, kEps, true);
    at::autocast::set_autocast_enabled(torch::kCUDA, false);
    EXPECT_EQ(h.scalar_type(), torch::kBFloat16);
    EXPECT_EQ(s.scalar_type(), torch::kFloat32);
    const Tensor X = wide(x).requires_grad_(), Y = wide(y).requires_grad_(),
                 W = wide(weight).requires_grad_(), S = X + Y,
                 H = ops::rms_norm_definition(S, W, kEps);
    EXPECT_CLOSE("s", s, S);
    EXPECT_CLOSE("h", h, H);
    for (const bool both : {false, true}) {
      TensorList outs = {h}, given = {dh}, want_outs = {H}, want_given = {wide(dh)};
      if (both) {
        outs.push_back(s), given.push_back(ds);
        want_outs.push_back(S), want_given.push_back(wide(ds));
      }
      const auto got = gradients(outs, {x, y, weight}, given);
      const auto want = gradients(want_outs, {X, Y, W}, want_given);
      for (size_t i = 0; i < want.size(); ++i) EXPECT_CLOSE(cat("gradient ", i), got[i], want[i]);
    }
  }
}

// Parameters of one flat buffer as one matrix; clones of them one by one.
TEST_F(FusedOnGpu, WeightsEndToEndAreOneProduct) {
  torch::manual_seed(3);
  for (const auto dtype : {torch::kFloat32, torch::kBFloat16}) {
    const Tensor flat = normal({(24 + 40 + 8) * 32}, dtype), x = leaf(normal({3, 5, 32}, dtype)),
                 few = leaf(normal({4, 32}, dtype));
    TensorList side, apart, given;
    int64_t at = 0;
    for (const int64_t out : {24, 40, 8}) {
      side.push_back(flat.narrow(0, at, out * 32).view({out, 32}).detach().requires_grad_());
      apart.push_back(leaf(side.back()));
      given.push_back(normal({3, 5, out}, dtype));
      at += out * 32;
    }
    given.push_back(normal({3, 5, 4}, dtype));
    // The lonely one stands between those that are one.
    const ops::Shapes shapes = {{3, 5, 24}, {3, 5, 4}, {3, 5, 40}, {3, 5, 8}};
    const auto got = ops::linears(x, {side[0], few, side[1], side[2]}, shapes,
                                  {{0, 2, 3}, flat.view({72, 32}), {}});
    ASSERT_TRUE(got.joint.defined());
    EXPECT_FALSE(got.each[0].defined());
    const auto want = ops::linears(x, {apart[0], apart[1], apart[2], few});
    EXPECT_CLOSE("joint", got.joint, torch::cat({want[0], want[1], want[2]}, -1));
    EXPECT_CLOSE("few", got.each[1], want[3]);
    TensorList in = side, others = apart;
    for (auto* list : {&in, &others}) list->push_back(few), list->push_back(x);
    const auto dgot = gradients({got.joint, got.each[1]}, in,
                                {torch::cat({given[0], given[1], given[2]}, -1), given[3]}),
               dwant = gradients(want, others, given);
    for (size_t i = 0; i < in.size(); ++i) EXPECT_CLOSE(cat("gradient ", i), dgot[i], dwant[i]);
  }
}

TEST_F(FusedOnGpu, TablesAreLookedUp) {
  torch::manual_seed(5);
  for (const int64_t rows : {3, 8, 9, 16, 17, 60})
    for (const auto dtype : {torch::kFloat32, torch::kBFloat16}) {
      SCOPED_TRACE(cat(rows, " ", dtype));
      const Tensor table = leaf(normal({rows, 24 + 40}, dtype));
      const Tensor index = torch::randint(-1, rows, {7, 300}, torch::kInt64).to(torch::kCUDA);
      const Tensor got = ops::take({table}, index)[0], given = normal({7, 300, 64}, dtype);
      const auto dgot = gradients({got}, {table}, {given});
      // The definition, in double.
      const Tensor T = wide(table).requires_grad_();
      const Tensor flat = index.cpu().flatten();
      const Tensor rows_of = T.index_select(0, flat.clamp_min(0)) * (flat >= 0).unsqueeze(1);
      EXPECT_CLOSE("rows", got.flatten(0, 1), rows_of);
      const auto D = gradients({rows_of}, {T}, {wide(given).flatten(0, 1)});
      EXPECT_CLOSE("definition", dgot[0], D[0]);
    }
}

TEST_F(FusedOnGpu, HeadsOfAWiderTensorAreNormedInPlace) {
  torch::manual_seed(6);
  for (const auto dtype : {torch::kFloat32, torch::kBFloat16}) {
    const Tensor all = normal({3, 7, 96}, dtype), dy = normal({3, 7, 4, 16}, dtype);
    const Tensor x = leaf(all).narrow(2, 0, 64).view({3, 7, 4, 16}).detach().requires_grad_(),
                 copy = leaf(x.contiguous()), weight = leaf(normal({16}));
    EXPECT_FALSE(x.is_contiguous());
    for (const bool weighted : {false, true}) {
      const auto f = [&](const Tensor& t) {
        return weighted ? ops::rms_norm(t, weight, 1e-6) : ops::l2_norm(t, 1e-6);
      };
      EXPECT_TRUE(torch::equal(f(x), f(copy)));
      EXPECT_CLOSE("dx", gradients({f(x)}, {x}, {dy})[0], gradients({f(copy)}, {copy}, {dy})[0]);
      if (weighted) {
        EXPECT_CLOSE("dweight", gradients({f(x)}, {weight}, {dy})[0],
                     gradients({f(copy)}, {weight}, {dy})[0]);
      }
    }
  }
}

TEST_F(FusedOnGpu, WideSigmoid) {
  torch::manual_seed(7);
  for (const auto dtype : {torch::kFloat32, torch::kBFloat16, torch::kFloat64}) {
    const Tensor x = leaf(3 * normal({3, 11, 5}, dtype)), y = ops::wide_sigmoid(x, 2);
    EXPECT_EQ(y.scalar_type(), dtype == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32);
    // Rounded as torch rounds on the CPU; an exponential may differ in its last bit.
    const Tensor X = x.detach().cpu().requires_grad_(), Y = 2 * torch::sigmoid(X),
                 dy = torch::randn_like(Y);
    EXPECT_CLOSE("y", y, wide(Y));
    EXPECT_CLOSE("dx", gradients({y}, {x}, {dy.to(torch::kCUDA, y.scalar_type())})[0],
                 gradients({Y}, {X}, {dy})[0]);
  }
  const Tensor large = leaf(torch::full({1}, 6.25, torch::kBFloat16).cuda());
  const Tensor two = ops::wide_sigmoid(large, 2);
  EXPECT_EQ(two.item<float>(), 2);
  EXPECT_EQ(gradients({two}, {large}, {torch::ones_like(two)})[0].item<float>(), 0);
}

TEST_F(FusedOnGpu, CrossEntropy) {
  torch::manual_seed(8);
  for (const int64_t V : {1, 2, 7, 33, 1000})
    for (const int64_t rows : {1, 5, 3000})
      for (const auto dtype : {torch::kFloat32, torch::kBFloat16}) {
        const double smoothing = V == 7 ? 0.1 : V == 33 ? 0.6 : 0;
        SCOPED_TRACE(cat(V, " ", rows, " ", dtype));
        const Tensor x = 3 * normal({rows, V}, dtype);
        if (V == 1000) x.slice(1, 999) = -INFINITY;  // an answer that is ruled out
        Tensor target = torch::randint(-1, std::min<int64_t>(V, 999), {rows}, torch::kInt64);
        target[0] = 0;
        const Tensor share = torch::full({}, 0.25, torch::kFloat64).cuda(),
                     report = torch::ones({4}, torch::kFloat64).cuda();
        const Tensor dx = ops::gpu()->cross_entropy(x, target.cuda(), smoothing, share, report);
        const Tensor X = wide(x).requires_grad_();
        const Tensor loss =
            0.25 * at::cross_entropy_loss(X, target, {}, at::Reduction::Sum, -1, smoothing);
        const double right = (X.argmax(-1) == target).sum().item<double>();
        EXPECT_NEAR(report[0].item<double>() - 1, loss.item<double>(),
                    1e-5 * (1 + loss.item<double>()));
        // Several largest logits are possible in bfloat16; the first counts, as on the CPU.
        EXPECT_EQ(report[1].item<double>() - 1, right);
        EXPECT_EQ(report[2].item<double>(), 1);
        EXPECT_CLOSE("dx", dx, gradients({loss}, {X}, {})[0]);
      }
}

TEST_F(FusedOnGpu, GradientsOfBothTypesAreReadWhereTheyAre) {
  torch::manual_seed(9);
  // The last is large enough for blocks of several rounds.
  for (const int64_t large : {5000, 3'000'000, 20'000'003}) {
    std::vector<ops::GpuGradient> pieces;
    int64_t n = 0;
    TensorList want, keep;
    for (int64_t i = 0; i < 150; ++i) {  // more than one launch takes
      const int64_t size = i == 3 ? large : i % 5 == 0 ? 64 : 1 + i % 37;
      // Some lie on 16 bytes, as those of a model do.
      if (i % 4 == 0)
        for (; n % 16; ++n) want.push_back(torch::zeros({1})), keep.push_back(torch::ones({1}));
      ops::GpuGradient g{.wide = {}, .narrow = {}, .begin = n, .size = size, .decays = i % 7 == 0};
      Tensor sum = torch::zeros({size}, torch::kFloat64);
      if (i % 3 != 0) g.wide = normal({size}), sum += wide(g.wide);
      if (i % 2 != 0) g.narrow = normal({size}, torch::kBFloat16), sum += wide(g.narrow);
      pieces.push_back(g), want.push_back(sum);
      keep.push_back(torch::full({size}, g.decays ? 0.5 : 1., torch::kFloat64));
      n += size;
    }
    const auto filled = [&](float x) { return torch::full({n}, x).cuda(); };
    ops::GpuAdamW a{.values = filled(3),
                    .m = filled(0),
                    .v = filled(0),
                    .beta1 = 0.9,
                    .beta2 = 0.99,
                    .eps = 1e-3,
                    .settings = torch::tensor({0.1, 1., 0.5, 2., 1., 1.}, torch::kFloat64).cuda(),
                    .report = torch::zeros({4}, torch::kFloat64).cuda()};
    ops::gpu()->adamw(a, pieces);
    const Tensor flat = torch::cat(want).to(torch::kFloat64);
    const double norm = flat.norm().item<double>();
    EXPECT_NEAR(a.report[2].item<double>(), norm, 1e-5 * norm);
    EXPECT_EQ(a.report[3].item<double>(), 1);
    const Tensor g = flat * (2 / norm), m = 0.1 * g, v = 0.01 * g * g,
                 decayed = torch::cat(keep).to(torch::kFloat64) * 3;
    EXPECT_CLOSE("m", a.m, m);
    EXPECT_CLOSE("v", a.v, v);
    EXPECT_CLOSE("values", a.values, decayed - 0.1 * m / (v.sqrt() + 1e-3));
  }
}

// Several processes, each with its slice, do what one does with all of it, to the bit.
TEST_F(FusedOnGpu, SlicesAreUpdatedAsTheWhole) {
  torch::manual_seed(10);
  constexpr int64_t kEach = 8192, kPieces = 12, kSize = kPieces * kEach - 101;
  const Tensor gradient = normal({kSize}), start = normal({kSize});
  const auto updated = [&](int64_t slices) {
    const int64_t slice = kPieces / slices * kEach;
    ops::GpuAdamW a{.values = {},
                    .m = {},
                    .v = {},
                    .beta1 = 0.9,
                    .beta2 = 0.99,
                    .eps = 1e-3,
                    .settings = torch::tensor({0.1, 1., 0.5, 2., 1., 1.}, torch::kFloat64).cuda(),
                    .report = torch::zeros({4}, torch::kFloat64).cuda()};
    a.squares = torch::empty({kPieces}, a.report.options());
    TensorList out = {start.clone(), torch::zeros_like(start), torch::zeros_like(start)};
    const auto own = [&](const Tensor& x, int64_t s) {
      return x.narrow(0, s * slice, std::min(slice, kSize - s * slice));
    };
    for (int64_t s = 0; s < slices; ++s)
      ops::gpu()->squares(own(gradient, s), kEach,
                          a.squares.narrow(0, s * slice / kEach, slice / kEach));
    for (int64_t s = 0; s < slices; ++s) {
      a.values = own(out[0], s), a.m = own(out[1], s), a.v = own(out[2], s);
      const Tensor g = own(gradient, s);
      ops::gpu()->adamw(a,
                        {{.wide = g, .narrow = {}, .begin = 0, .size = g.numel(), .decays = true}});
    }
    out.push_back(a.report);
    return out;
  };
  const auto whole = updated(1);
  const double norm = wide(gradient).norm().item<double>();
  EXPECT_NEAR(whole[3][2].item<double>(), norm, 1e-6 * norm);
  EXPECT_EQ(whole[3][3].item<double>(), 1);
  EXPECT_FALSE(torch::equal(whole[0], start));
  for (const int64_t slices : {2, 3, 12}) {
    const auto got = updated(slices);
    for (size_t i = 0; i < whole.size(); ++i)
      EXPECT_TRUE(torch::equal(got[i], whole[i])) << slices << " slices, " << i;
  }
}

}  // namespace
}  // namespace lrnn
