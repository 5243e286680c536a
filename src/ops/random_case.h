#pragma once
#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "ops/problem.h"

// Cases that nobody thought of: those of an op's list with sizes and options by chance.
namespace lrnn::ops {

class Chance {
 public:
  explicit Chance(uint64_t seed) : random_(seed, /*stream=*/0, /*index=*/0) {}

  int64_t below(int64_t n) { return int64_t(random_.below(uint64_t(n))); }
  bool one_in(int64_t n) { return below(n) == 0; }
  template <class T> const T& of(const std::vector<T>& list) {
    return list[size_t(below(int64_t(list.size())))];
  }
  // 1 to `most`, small ones as often as large ones; every second is a power of two, where tiles
  // end, or lies beside one.
  int64_t size(int64_t most) {
    const double x = std::exp2(random_.uniform() * std::log2(double(most + 1)));
    const int64_t any = int64_t(x), whole = int64_t(1) << std::llround(std::log2(x));
    return std::clamp<int64_t>(one_in(2) ? any : whole + random_.between(-1, 1), 1, most);
  }
  // Lengths of sequences that together are `total`, some of them 0.
  std::vector<int64_t> cut(int64_t total) {
    std::vector<int64_t> out;
    for (int64_t left = total; left > 0; left -= out.back())
      out.push_back(std::min(left, one_in(4) ? 0 : size(std::max<int64_t>(left, 2))));
    return out;
  }

 private:
  Random random_;
};

// Entries of one sequence's state.
template <class Case> int64_t state_size(const Case& c) {
  if constexpr (requires { c.key_heads; })
    return c.H * c.K * c.V * c.N;
  else if constexpr (requires { c.K, c.V; })
    return c.H * c.K * c.V;
  else if constexpr (requires { c.mini_batch; })
    return 2 * c.H * c.D * c.D;
  else if constexpr (requires { c.H, c.D; })
    return 16 * c.H * c.D;  // sLSTM's four gates and states
  else
    return 1;
}

// Every field a case may have. The limits keep the definition quick, a loop over tokens whose
// backward keeps every state.
template <class Case> Case varied(Case c, Chance& chance) {
  const auto vary = [&](int64_t& size, int64_t most) {
    if (chance.one_in(2)) size = chance.size(most);
  };
  const auto turn = [&](bool& option) {
    if (chance.one_in(3)) option = !option;
  };
  constexpr int64_t kLeastNorm = 3;  // of fewer channels it is a sign, and its gradient rounding
  vary(c.B, 3), vary(c.T, 200);
  if constexpr (requires { c.n; }) {
    // Blocks of n channels ask for whole ones; any other matrix takes them, too.
    const int64_t block = c.n > 0 && c.n < 100 ? c.n : 1;
    if (chance.one_in(2)) c.D = block * chance.size(300 / block);
    if (block == 1) c.D = std::max(c.D, kLeastNorm);
    if (c.n > 100) c.D = std::max<int64_t>(c.D, 32);  // so that rounding does not choose a token
  } else if constexpr (requires { c.mini_batch; }) {
    vary(c.mini_batch, 64), vary(c.H, 4);
    if (chance.one_in(2)) c.D = chance.size(70);
    c.D = std::max(c.D, kLeastNorm);
  } else if constexpr (requires { c.D; }) {
    vary(c.D, 140);
  }
  if constexpr (requires { c.W; }) vary(c.W, 9);
  if constexpr (requires { c.K, c.V; }) vary(c.K, 140), vary(c.V, 140);
  if constexpr (requires { c.key_heads; }) {
    vary(c.N, 4);
    if (c.key_heads || chance.one_in(4))
      c.key_heads = chance.size(3), c.H = c.key_heads * chance.size(4);
    else
      vary(c.H, 4);
  } else if constexpr (requires { c.N; }) {
    vary(c.N, 40);
  } else if constexpr (requires { c.K, c.H; }) {
    vary(c.H, 4);
  }
  if constexpr (requires { c.state; }) turn(c.state);
  if constexpr (requires { c.gate; }) turn(c.gate);
  if constexpr (requires { c.q; }) turn(c.q);
  if constexpr (requires { c.negative; }) turn(c.negative);
  if constexpr (requires { c.wide_beta; }) turn(c.wide_beta);
  if constexpr (requires { c.wide; }) turn(c.wide);
  if constexpr (requires { c.bias; }) turn(c.bias);
  if constexpr (requires { c.softplus; }) turn(c.softplus), turn(c.skip), turn(c.outputs);
  if constexpr (requires { c.alike; }) c.alike = true;  // no quotient of two roundings
  constexpr int64_t kMostEntries = int64_t(1) << 24;
  while (c.B * c.T * state_size(c) > kMostEntries && c.B * c.T > 1) c.B > 3 ? c.B /= 2 : c.T /= 2;
  c.T = std::max<int64_t>(c.T, 1);
  if constexpr (requires { c.lengths; }) {
    if (!c.lengths.empty() || chance.one_in(3)) c.B = 1, c.lengths = chance.cut(c.T);
  }
  return c;
}

}  // namespace lrnn::ops
