#include "kernels/row_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

// Every build of the row kernels that this machine can run, not only the one it would choose.
namespace lrnn::kernels::rows {
namespace {

std::vector<Isa> isas() {
  std::vector<Isa> all;
  for (const Isa isa : kIsas)
    if (has_isa(isa)) all.push_back(isa);
  return all;
}

template <class R> std::vector<R> exp_of(Isa isa, const std::vector<R>& x) {
  std::vector<R> y(x.size());
  table<R>(isa).exp(x.data(), int64_t(x.size()), y.data());
  return y;
}

TEST(Exp, FloatIsGoodToTheLastPlaceAlmost) {
  std::vector<float> x;
  for (double v = -110; v < 95; v += 0.000317) x.push_back(float(v));
  for (double v = 1e-9; v < 1; v *= 1.01) x.push_back(float(v)), x.push_back(float(-v));
  for (const Isa isa : isas()) {
    const auto y = exp_of(isa, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = std::exp(double(x[i]));
      if (want > std::numeric_limits<float>::max() * (1 + 3e-8)) {
        ASSERT_EQ(y[i], INFINITY) << x[i];
        continue;
      }
      // Half a subnormal step, or 1.5 units in the last place.
      ASSERT_NEAR(y[i], want, std::max(want * 1.5 * 0x1p-23, 0x1p-149)) << x[i];
    }
  }
}

TEST(Exp, DoubleIsGoodTo1e15) {
  std::vector<double> x;
  for (double v = -700; v < 709; v += 0.0137) x.push_back(v);
  for (const Isa isa : isas()) {
    const auto y = exp_of(isa, x);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i] / std::exp(x[i]), 1, 1e-15) << x[i];
  }
}

template <class R> void expect_limits() {
  const R inf = std::numeric_limits<R>::infinity(), big = std::numeric_limits<R>::max();
  const std::vector<R> x = {inf, -inf, big, -big, 0, -R(0), R(1e4), R(-1e4), R(NAN)};
  const std::vector<R> want = {inf, 0, inf, 0, 1, 1, inf, 0};
  for (const Isa isa : isas()) {
    const auto y = exp_of(isa, x);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(y[i], want[i]) << x[i];
    EXPECT_TRUE(std::isnan(y[8]));
  }
}
TEST(Exp, Limits) { expect_limits<float>(), expect_limits<double>(); }

TEST(Silu, GoodEverywhere) {
  std::vector<float> x = {0, -0.f, 1e-30f, -1e-30f, 1e30f, -1e30f, 3e38f, -3e38f, INFINITY};
  for (double v = -130; v < 130; v += 0.00317) x.push_back(float(v));
  const std::vector<float> ones(x.size(), 1), nan = {NAN};
  const auto n = int64_t(x.size());
  for (const Isa isa : isas()) {
    std::vector<float> y(x.size());
    table<float>(isa).swiglu({x.data(), ones.data(), n, n, n}, 0, 1, y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double v = x[i], want = v / (1 + std::exp(-v));
      if (std::isinf(v))
        EXPECT_EQ(y[i], x[i]);
      else  // below -88 the exponential is infinite in float32 and the answer 0
        ASSERT_NEAR(y[i], want, 4e-7 * std::abs(want) + 1e-36) << v;
    }
    table<float>(isa).swiglu({nan.data(), ones.data(), 1, 1, 1}, 0, 1, y.data());
    EXPECT_TRUE(std::isnan(y[0]));
  }
}

std::vector<float> random_row(uint64_t seed, size_t n) {
  Random random(seed, 0, 0);
  std::vector<float> x(n);
  for (auto& v : x) v = float(4 * random.uniform() - 2);
  return x;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want, Isa isa) {
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], 1e-5 * (1 + std::abs(want[i]))) << int(isa) << " at " << i;
}

// All kernels on rows that end inside a vector; the first build is compared with the others.
std::vector<float> everything(Isa isa, int64_t D) {
  const int64_t rows = 6, W = 4;
  const size_t n = size_t(rows * D), d = size_t(D);
  const auto x = random_row(1, n), up = random_row(2, n), dy = random_row(3, n);
  const auto weight = random_row(4, 4 * d), state = random_row(5, 2 * 4 * d);
  const auto& t = table<float>(isa);
  std::vector<float> out, y(n), dx(n), dup(n), dweight(5 * d), dstate(8 * d), scratch(4 * d);
  const auto keep = [&](const std::vector<float>& v) { out.insert(out.end(), v.begin(), v.end()); };

  const Norm<float> norm{x.data(), D, weight.data(), 1 / double(D), 1e-6, D};
  t.norm(norm, 0, rows, y.data()), keep(y);
  t.norm_backward(norm, 0, rows, dy.data(), D, dx.data(), dweight.data()), keep(dx), keep(dweight);
  const Swiglu<float> swiglu{x.data(), up.data(), D, D, D};
  t.swiglu(swiglu, 0, rows, y.data()), keep(y);
  t.swiglu_backward(swiglu, 0, rows, dy.data(), D, dx.data(), dup.data(), D), keep(dx), keep(dup);
  const std::vector<int64_t> begin = {0, 2, rows};
  const std::vector<float> zeros(d);
  const Conv<float> conv{
      x.data(), D, weight.data(), nullptr, state.data(), zeros.data(), begin.data(), 2, D, W, true};
  t.conv(conv, 0, rows, y.data()), keep(y);
  t.conv_backward(conv, 0, rows,
                  {dy.data(), D, nullptr, dx.data(), dstate.data(), dweight.data(),
                   dweight.data() + 4 * d, scratch.data()});
  keep(dx), keep(dweight), keep(dstate);

  auto p = x, m = up, v = random_row(6, n);
  for (auto& s : v) s = std::abs(s);
  flat_table(isa).adamw({.9f, .1f, .99f, .01f, 1e-8f, .5f, .999f, .01f, .3f}, int64_t(n), p.data(),
                        dy.data(), m.data(), v.data());
  keep(p), keep(m), keep(v);
  out.push_back(float(flat_table(isa).sum_of_squares(dy.data(), int64_t(n))));
  return out;
}

TEST(RowKernels, InstructionSetsAgree) {
  for (const int64_t D : {1, 3, 8, 15, 16, 33, 64}) {
    const auto want = everything(Isa::kBaseline, D);
    for (const Isa isa : isas()) expect_near(everything(isa, D), want, isa);
  }
}

}  // namespace
}  // namespace lrnn::kernels::rows
