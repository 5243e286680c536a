#pragma once
#include "kernels/cpu/vec.h"

// The exponential, and the functions of gates and decays that are made of it.
namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class F> struct ExpOf;
template <> struct ExpOf<float> {
  static constexpr int kMantissa = 23, kBias = 127, kTerms = 7;
  static constexpr float kRound = 12582912.f;  // 1.5 2^23: adding it leaves the nearest integer
  static constexpr float kLog2e = 1.44269504f, kLow = -104, kHigh = 89;
  // ln 2 in two parts; products of the first with an exponent are exact.
  static constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
};
template <> struct ExpOf<double> {
  static constexpr int kMantissa = 52, kBias = 1023, kTerms = 13;
  static constexpr double kRound = 6755399441055744.;  // 1.5 2^52
  static constexpr double kLog2e = 1.4426950408889634, kLow = -746, kHigh = 710;
  static constexpr double kLn2High = 6.93145751953125e-1, kLn2Low = 1.4286068203094172321e-6;
};
template <class V> using Element = std::remove_reference_t<decltype(V{}[0])>;

template <class F> constexpr F one_over_factorial(int n) {
  F f = 1;
  for (int i = 2; i <= n; ++i) f *= F(i);
  return 1 / f;
}

// Both keep a NaN x.
template <class V, class F> inline V at_least(V x, F low) { return x < low ? low - V{} : x; }
template <class V, class F> inline V at_most(V x, F high) { return x > high ? high - V{} : x; }

// x 2^n, where `shifted` is n + kRound. The power comes in two factors, so that subnormal results
// and infinities come out right.
template <class V> inline V scale(V x, V shifted) {
  using F = Element<V>;
  using E = ExpOf<F>;
  using Int = typename VecOf<F>::Int;
  using Bits = typename VecOf<F>::Bits;
  const Int n = (Int)((Bits)shifted - (Bits)splat<F>(E::kRound));
  const Int half = n >> 1;
  const V first = (V)((Bits)(half + E::kBias) << E::kMantissa);
  const V second = (V)((Bits)(n - half + E::kBias) << E::kMantissa);
  return x * first * second;
}

// 1/x for x >= 1.
template <class V> inline V reciprocal(V x) { return 1 / x; }

#if defined(__AVX512F__)
// One instruction each, where the others take three and seven; and an estimate with one Newton step
// takes a quarter of the time of a division. Its error at infinity is masked out.
constexpr __mmask16 kEvery = 0xffff;  // the unmasked forms make GCC 12 warn of uninitialised values
inline Vec<float> at_least(Vec<float> x, float low) {
  return (Vec<float>)_mm512_maskz_max_ps(kEvery, _mm512_set1_ps(low), (__m512)x);
}
inline Vec<float> at_most(Vec<float> x, float high) {
  return (Vec<float>)_mm512_maskz_min_ps(kEvery, _mm512_set1_ps(high), (__m512)x);
}
inline Vec<float> scale(Vec<float> x, Vec<float> shifted) {
  return (Vec<float>)_mm512_maskz_scalef_ps(kEvery, (__m512)x,
                                            (__m512)(shifted - ExpOf<float>::kRound));
}
inline Vec<float> reciprocal(Vec<float> x) {
  const __m512 v = (__m512)x, y = _mm512_maskz_rcp14_ps(kEvery, v), one = _mm512_set1_ps(1);
  const __mmask16 finite = _mm512_cmp_ps_mask(v, _mm512_set1_ps(__builtin_inff()), _CMP_NEQ_UQ);
  return (Vec<float>)_mm512_maskz_fmadd_ps(finite, y, _mm512_fnmadd_ps(v, y, one), y);
}
#endif

// e^x = 2^n e^r with |r| <= ln(2)/2, where the Taylor series to kTerms is exact to the last place.
template <class V> inline V exp_(V x) {
  using F = Element<V>;
  using E = ExpOf<F>;
  x = at_most(at_least(x, E::kLow), E::kHigh);
  const V shifted = x * E::kLog2e + E::kRound;
  const V n = shifted - E::kRound;
  const V r = (x - n * E::kLn2High) - n * E::kLn2Low;
  V series = splat<F>(one_over_factorial<F>(E::kTerms));
#pragma GCC unroll 16
  for (int i = E::kTerms - 1; i >= 2; --i) series = series * r + one_over_factorial<F>(i);
  return scale(r * r * series + r + F(1), shifted);
}

template <class V> inline V sigmoid(V x) { return reciprocal(1 + exp_(-x)); }
template <class V> inline V tanh(V x) { return 2 * sigmoid(2 * x) - 1; }
template <class V> inline V silu(V x) { return x * sigmoid(x); }
// d silu / dx, given sigmoid(x).
template <class V> inline V silu_slope(V x, V s) { return s * (1 + x * (1 - s)); }

// log(1 + u) for 0 <= u <= 1, as 2 artanh(u / (2 + u)): the argument is at most 1/3, where nine
// terms of the series are enough for float and seventeen for double.
template <class F> inline Vec<F> log_one_plus(Vec<F> u) {
  constexpr int kTerms = sizeof(F) == 4 ? 9 : 17;
  const Vec<F> s = u / (2 + u), square = s * s;
  Vec<F> series = splat<F>(F(1) / F(2 * kTerms - 1));
#pragma GCC unroll 20
  for (int i = kTerms - 2; i >= 0; --i) series = series * square + F(1) / F(2 * i + 1);
  return 2 * s * series;
}
template <class F> inline Vec<F> log_sigmoid(Vec<F> x) {
  const Vec<F> zero{}, low = x < zero ? x : zero;
  return low - log_one_plus<F>(exp_(x < zero ? x : -x));
}

// log(1 + e^x) = max(x, 0) + log1p(e^-|x|), with log1p(e) = 2 artanh(e / (2 + e)): its series in
// s <= 1/3 is exact to the last place for small e too. Above 20 it is x, as torch has it.
template <class F> inline Vec<F> softplus(Vec<F> x) {
  constexpr int kTerms = sizeof(F) == 4 ? 8 : 17;
  const Vec<F> e = exp_(x < 0 ? x : -x);
  const Vec<F> s = e * reciprocal(2 + e), s2 = s * s;
  Vec<F> series = splat<F>(F(1) / (2 * kTerms + 1));
#pragma GCC unroll 20
  for (int i = kTerms - 1; i >= 0; --i) series = fma<F>(series, s2, splat<F>(F(1) / (2 * i + 1)));
  return x > 20 ? x : (x > 0 ? x : Vec<F>{}) + 2 * s * series;
}
template <class F> inline Vec<F> softplus_slope(Vec<F> x) {
  return x > 20 ? splat<F>(1) : sigmoid(x);
}

// Diagonal transitions in [0,1] or [-1,1], from the exponential e in (0,1].
template <class F, bool kNegative> inline Vec<F> transition(Vec<F> e) {
  return kNegative ? fma<F>(splat<F>(2), e, splat<F>(-1)) : e;
}
// Its derivative with respect to the exponent.
template <class F, bool kNegative> inline Vec<F> slope(Vec<F> e) { return kNegative ? 2 * e : e; }

// a = exp(log_decay) or 2 exp(log_decay) - 1, and its slope where it is wanted. Rows of `a` and
// `slopes` are whole vectors.
template <class F>
void read_decay(const F* log_decay, int64_t K, bool negative, F* a, F* slopes = nullptr) {
  over<F>(K, [&](int64_t i, auto part) {
    const Vec<F> e = exp_(load(log_decay + i, part));
    store(a + i, negative ? transition<F, true>(e) : e);
    if (slopes) store(slopes + i, negative ? slope<F, true>(e) : e);
  });
}

}  // namespace
}  // namespace lrnn::kernels::LRNN_ISA
