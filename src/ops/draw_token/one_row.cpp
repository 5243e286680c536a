#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "ops/draw_token/draw_token.h"

namespace lrnn::ops {
namespace {

// Most draws end among the first few: more are put in order only when they are needed.
constexpr int64_t kFirst = 64;

}  // namespace

int64_t draw_token(const float* logits, int64_t vocabulary, const Drawing& how, double u) {
  check(vocabulary >= 1, "there is no token to draw");
  if (how.temperature == 0) return std::max_element(logits, logits + vocabulary) - logits;
  const int64_t kept = how.top_k > 0 ? std::min(how.top_k, vocabulary) : vocabulary;
  std::vector<int32_t> ids(static_cast<size_t>(vocabulary));
  std::iota(ids.begin(), ids.end(), 0);
  const auto before = [logits](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  if (kept < vocabulary) {
    std::nth_element(ids.begin(), ids.begin() + kept - 1, ids.end(), before);
    ids.resize(size_t(kept));
  }
  const float largest = logits[*std::min_element(ids.begin(), ids.end(), before)];
  const auto weight = [&](int32_t id) {
    return std::exp((double(logits[id]) - double(largest)) / how.temperature);
  };
  double total = 0;
  for (const int32_t id : ids) total += weight(id);

  int64_t sorted = 0;
  const auto sort_more = [&] {
    const int64_t next = std::min<int64_t>(kept, std::max(kFirst, 4 * sorted));
    std::partial_sort(ids.begin() + sorted, ids.begin() + next, ids.end(), before);
    sorted = next;
  };
  // The smallest set with that mass; it is what is drawn from.
  double mass = total;
  int64_t among = kept;
  if (how.top_p < 1) {
    mass = 0, among = 0;
    do {
      if (among == sorted) sort_more();
      mass += weight(ids[size_t(among++)]);
    } while (among < kept && mass < how.top_p * total);
  }
  double passed = 0;
  for (int64_t i = 0; i < among; ++i) {
    if (i == sorted) sort_more();
    passed += weight(ids[size_t(i)]);
    if (passed > u * mass) return ids[size_t(i)];
  }
  return ids[size_t(among - 1)];  // u within rounding of 1
}

}  // namespace lrnn::ops
