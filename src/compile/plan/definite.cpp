#include <algorithm>

#include "compile/plan/plan.h"

namespace lrnn::compile {
namespace {

constexpr double kLeastGap = 1.0 / 64;  // what a table behind a norm tells apart with room to spare
constexpr size_t kMostDefiniteWords = 4096;

struct Prefix {
  int64_t length, state;
  double x;
};

// Every word of at most k letters with its register, by length; nothing when there are too many.
std::vector<Prefix> prefixes(const Automaton& a, const DefinitePlan& plan) {
  std::vector<Prefix> out = {{0, a.start, plan.start}};
  for (size_t i = 0; i < out.size() && out[i].length < plan.k; ++i)
    for (size_t s = 0; s < plan.digit.size(); ++s) {
      if (out.size() > kMostDefiniteWords) return {};
      out.push_back({out[i].length + 1, a.step(out[i].state, static_cast<int64_t>(s)),
                     plan.leak * out[i].x + (1 - plan.leak) * plan.digit[s]});
    }
  return out;
}

// Digits over n-1 and a leak of 1 / 2n leave room between the intervals of words: a letter
// outweighs all older ones together.
void set_digits(const Automaton& a, bool extra, DefinitePlan& plan) {
  const auto n = static_cast<double>(a.symbols + extra);
  plan.leak = 1 / (2 * n);
  plan.digit.clear();
  for (int64_t x = 0; x < a.symbols; ++x)
    plan.digit.push_back((static_cast<double>(x) + extra) / (n - 1));
  double oldest = 1;
  for (int64_t i = 0; i < plan.k; ++i) oldest *= plan.leak;
  // Two words that differ in the oldest letter alone, by one digit, and what is older at its worst.
  plan.gap = (1 - plan.leak) / (n - 1) * oldest / plan.leak - oldest;
}

}  // namespace

std::optional<DefinitePlan> definite_plan(const Automaton& a, int64_t k) {
  if (k < 1 || a.symbols < 1) return std::nullopt;
  DefinitePlan out;
  out.k = k;
  // Before the first letter the register looks as if a word that leads to the start had been read;
  // when there is none, one more digit says "no letter yet".
  bool extra = true;
  if (a.symbols > 1) {
    set_digits(a, false, out);
    for (const auto& p : prefixes(a, out))
      if (extra && p.length == k && p.state == a.start) extra = false, out.start = p.x;
  }
  if (extra) set_digits(a, true, out);
  const auto words = prefixes(a, out);
  if (out.gap < kLeastGap || words.empty()) return std::nullopt;
  double rest = 1;
  for (int64_t i = 0; i < k; ++i) rest *= out.leak;
  for (const auto& p : words) {
    // The part of x that letters before the last k make is between 0 and leak^k.
    double begin = p.x;
    if (p.length == k) begin -= rest * out.start;
    out.intervals.push_back({begin, p.length == k ? begin + rest : p.x, p.state});
  }
  std::sort(out.intervals.begin(), out.intervals.end(),
            [](const auto& p, const auto& q) { return p.low < q.low; });
  std::vector<DefinitePlan::Interval> joined;
  for (const auto& i : out.intervals) {
    if (!joined.empty() && joined.back().state == i.state)
      joined.back().high = std::max(joined.back().high, i.high);
    else
      joined.push_back(i);
  }
  out.intervals = std::move(joined);
  return out;
}

}  // namespace lrnn::compile
