#include "model/draw_token.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace lrnn::model {
namespace {

// Probabilities by the definition: softmax, then the two cuts in the order of the logits.
std::vector<double> exact(const std::vector<float>& logits, const Drawing& how) {
  std::vector<size_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  if (how.top_k) order.resize(std::min(order.size(), size_t(how.top_k)));
  std::vector<double> p(logits.size(), 0);
  double sum = 0;
  for (const size_t i : order) sum += p[i] = std::exp(double(logits[i]) / how.temperature);
  for (auto& x : p) x /= sum;
  double mass = 0;
  for (const size_t i : order) {
    if (mass >= how.top_p) p[i] = 0;
    mass += p[i];
  }
  sum = 0;
  for (const double x : p) sum += x;
  for (auto& x : p) x /= sum;
  return p;
}

TEST(DrawToken, FrequenciesAreTheProbabilities) {
  std::vector<float> logits;
  for (int i = 0; i < 300; ++i)
    logits.push_back(float(3 * std::sin(i * 1.7) + (i % 50 == 3 ? 2 : 0)));
  for (const Drawing& how : std::vector<Drawing>{{1, 0, 1},
                                                 {.temperature = .7},
                                                 {.temperature = 1.5, .top_k = 5},
                                                 {.top_p = .5},
                                                 {.temperature = 2, .top_k = 200, .top_p = .9}}) {
    const auto p = exact(logits, how);
    std::vector<double> seen(p.size(), 0);
    constexpr int kDraws = 40000;
    for (int i = 0; i < kDraws; ++i)
      ++seen[size_t(draw_token(logits.data(), 300, how, Random(1, 2, uint64_t(i)).uniform()))];
    double chi = 0;
    int free = -1;
    for (size_t i = 0; i < p.size(); ++i) {
      if (p[i] == 0) {
        ASSERT_EQ(seen[i], 0) << i;
      }
      if (p[i] * kDraws < 5) continue;
      chi += std::pow(seen[i] - p[i] * kDraws, 2) / (p[i] * kDraws), ++free;
    }
    EXPECT_LT(chi, free + 5 * std::sqrt(2.0 * free)) << free;
  }
}

TEST(DrawToken, TakesTheLargestAndOfEqualsTheLowest) {
  const std::vector<float> logits = {1, 5, 2, 5};
  EXPECT_EQ(draw_token(logits.data(), 4, {.temperature = 0}, .99), 1);
  EXPECT_EQ(draw_token(logits.data(), 4, {.top_k = 1}, .99), 1);
  EXPECT_EQ(draw_token(logits.data(), 4, {.top_p = 1e-9}, .99), 1);
  EXPECT_EQ(draw_token(logits.data(), 4, {}, 0), 1);
  EXPECT_EQ(draw_token(logits.data(), 4, {}, std::nextafter(1.0, 0.0)), 0);
}

}  // namespace
}  // namespace lrnn::model
