#include <c10/util/BFloat16.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/delta_product.h"
#include "kernels/row_kernels.h"

// Every kernel rounds to bfloat16 as torch does, on every instruction set: to nearest, ties to
// even, and any NaN to the one torch has.
namespace lrnn::kernels {
namespace {

// Every upper half of a float, with lower halves below, at and above the tie.
std::vector<float> floats_to_round() {
  std::vector<float> all;
  for (uint32_t upper = 0; upper < 0x10000; ++upper)
    for (const uint32_t lower : {0x0000, 0x0001, 0x7fff, 0x8000, 0x8001, 0xffff}) {
      const uint32_t bits = upper << 16 | lower;
      float x;
      std::memcpy(&x, &bits, 4);
      all.push_back(x);
    }
  return all;
}

void expect_rounded(const std::vector<float>& from, const std::vector<Bf16>& to, Isa isa) {
  const size_t copies = to.size() / from.size();
  for (size_t i = 0; i < to.size(); ++i) {
    const float x = from[i / copies];
    ASSERT_EQ(to[i].bits, c10::BFloat16(x).x)
        << name(isa) << ", copy " << i % copies << " of " << x;
  }
}

// The RMS of ones is 1, so what the norm rounds is its weight.
TEST(Bfloat16, RowKernelsRoundAsTorchDoes) {
  const auto weight = floats_to_round();
  const auto n = int64_t(weight.size());
  const std::vector<Bf16> ones(weight.size(), Bf16{0x3f80});
  for (const Isa isa : kIsas) {
    if (!has_isa(isa)) continue;
    for (const int64_t D : {n, int64_t(3)}) {  // whole vectors, and parts of one
      std::vector<Bf16> y(weight.size());
      for (int64_t i = 0; i < n; i += D)
        rows::table<Bf16>(isa).norm({ones.data(), D, &weight[i], 1 / double(D), 0, D}, 0, 1, &y[i]);
      expect_rounded(weight, y, isa);
    }
  }
}

// One token with v = k = q = 1 reads beta; every head has its own.
TEST(Bfloat16, RecurrencesRoundAsTorchDoes) {
  std::vector<float> beta;  // not those that are flushed to zero
  for (const float x : floats_to_round())
    if (!(std::abs(x) < 0x1p-126f)) beta.push_back(x);
  constexpr int64_t V = 19;  // whole vectors and a rest
  const std::vector<Bf16> ones(beta.size() * V, Bf16{0x3f80});
  const auto rows = [](const Bf16* data, int64_t n) {
    return Rows{const_cast<Bf16*>(data), 0, 0, 0, n};
  };
  const Isa best = best_isa();
  for (const Isa isa : kIsas) {
    if (!has_isa(isa)) continue;
    force_isa(isa);
    std::vector<Bf16> o(beta.size() * V);
    std::vector<float> final_state(beta.size() * V);
    DeltaProductForward p;
    p.type = Type::kBFloat16;
    p.B = p.S = p.T = p.N = p.K = 1, p.H = int64_t(beta.size()), p.V = V;
    p.q = p.k = rows(ones.data(), 1), p.v = rows(ones.data(), V), p.o = rows(o.data(), V);
    p.beta = beta.data(), p.final_state = final_state.data();
    delta_product_forward(p, serial);
    expect_rounded(beta, o, isa);
  }
  force_isa(best);
}

}  // namespace
}  // namespace lrnn::kernels
