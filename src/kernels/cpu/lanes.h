#pragma once
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include <cstring>
#include <utility>

#include "kernels/row_kernels.h"

// Vectors as wide as the instruction set this file is compiled for, on the compiler's vector types.
//
// Everything is in an unnamed namespace on purpose: this header is compiled once per instruction
// set, and with external linkage the linker would keep one copy of each function, perhaps one that
// the machine cannot run.
namespace lrnn::kernels::rows {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

template <class T> struct Lanes;
template <> struct Lanes<float> {
  typedef float Vec __attribute__((vector_size(kBytes)));
  typedef int32_t Int __attribute__((vector_size(kBytes)));
  typedef uint32_t Bits __attribute__((vector_size(kBytes)));
  static constexpr int kMantissa = 23, kBias = 127, kTerms = 7;
  static constexpr float kRound = 12582912.f;  // 1.5 2^23: adding it leaves the nearest integer
  static constexpr float kLog2e = 1.44269504f, kLow = -104, kHigh = 89;
  // ln 2 in two parts; products of the first with an exponent are exact.
  static constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
};
template <> struct Lanes<double> {
  typedef double Vec __attribute__((vector_size(kBytes)));
  typedef int64_t Int __attribute__((vector_size(kBytes)));
  typedef uint64_t Bits __attribute__((vector_size(kBytes)));
  static constexpr int kMantissa = 52, kBias = 1023, kTerms = 13;
  static constexpr double kRound = 6755399441055744.;  // 1.5 2^52
  static constexpr double kLog2e = 1.4426950408889634, kLow = -746, kHigh = 710;
  static constexpr double kLn2High = 6.93145751953125e-1, kLn2Low = 1.4286068203094172321e-6;
};
typedef uint16_t Halves __attribute__((vector_size(kBytes / 2)));

template <class R> using Vec = typename Lanes<R>::Vec;
template <class R> constexpr int kLanes = kBytes / int(sizeof(R));

// How much of a vector counts: all of it, or the first n lanes at the end of a row.
struct All {};
struct First {
  int64_t n;
};

template <class R, class Body> inline void over(int64_t n, Body&& body) {
  int64_t i = 0;
  for (; i + kLanes<R> <= n; i += kLanes<R>) body(i, All{});
  if (i < n) body(i, First{n - i});
}

template <class R> inline Vec<R> all(R x) { return x - Vec<R>{}; }

inline Vec<float> widen(Halves h) {
  return (Vec<float>)(__builtin_convertvector(h, Lanes<float>::Bits) << 16);
}
// To nearest, ties to even; a NaN stays one.
inline Halves narrow(Vec<float> x) {
  using Bits = Lanes<float>::Bits;
  const Bits u = (Bits)x, even = u + 0x7fff + ((u >> 16) & 1);
  const Bits kept = x == x ? even : (u | 0x400000);
  return __builtin_convertvector(kept >> 16, Halves);
}

template <class R> inline Vec<R> load(const R* p, All) {
  Vec<R> x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
inline Vec<float> load(const Bf16* p, All) {
  Halves h;
  std::memcpy(&h, p, sizeof h);
  return widen(h);
}
template <class R> inline void store(R* p, Vec<R> x, All) { std::memcpy(p, &x, sizeof x); }
inline void store(Bf16* p, Vec<float> x, All) {
  const Halves h = narrow(x);
  std::memcpy(p, &h, sizeof h);
}

// Parts of vectors. Heads may be narrower than a vector, so these are not only for the odd tail.
#if defined(__AVX512F__)
inline uint32_t mask(First part) { return (1u << part.n) - 1; }
inline Vec<float> load(const float* p, First part) {
  return (Vec<float>)_mm512_maskz_loadu_ps(__mmask16(mask(part)), p);
}
inline Vec<double> load(const double* p, First part) {
  return (Vec<double>)_mm512_maskz_loadu_pd(__mmask8(mask(part)), p);
}
inline Vec<float> load(const Bf16* p, First part) {
  return widen((Halves)_mm256_maskz_loadu_epi16(__mmask16(mask(part)), p));
}
inline void store(float* p, Vec<float> x, First part) {
  _mm512_mask_storeu_ps(p, __mmask16(mask(part)), (__m512)x);
}
inline void store(double* p, Vec<double> x, First part) {
  _mm512_mask_storeu_pd(p, __mmask8(mask(part)), (__m512d)x);
}
inline void store(Bf16* p, Vec<float> x, First part) {
  _mm256_mask_storeu_epi16(p, __mmask16(mask(part)), (__m256i)narrow(x));
}
#else
template <class R> inline Vec<R> load(const R* p, First part) {
  Vec<R> x{};
  for (int i = 0; i < kLanes<R>; ++i)
    if (i < part.n) x[i] = p[i];
  return x;
}
inline Vec<float> load(const Bf16* p, First part) {
  Halves h{};
  for (int i = 0; i < kLanes<float>; ++i)
    if (i < part.n) h[i] = p[i].bits;
  return widen(h);
}
template <class R> inline void store(R* p, Vec<R> x, First part) {
  for (int i = 0; i < kLanes<R>; ++i)
    if (i < part.n) p[i] = x[i];
}
inline void store(Bf16* p, Vec<float> x, First part) {
  const Halves h = narrow(x);
  for (int i = 0; i < kLanes<float>; ++i)
    if (i < part.n) p[i].bits = h[i];
}
#endif

// The sum of the lanes, halves upon halves.
template <class R, int N = kLanes<R>, class V> inline R sum(V x) {
  if constexpr (N == 2) {
    return x[0] + x[1];
  } else {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return sum<R, N / 2>(__builtin_shufflevector(x, x, int(I)...) +
                           __builtin_shufflevector(x, x, int(I + N / 2)...));
    }
    (std::make_index_sequence<N / 2>());
  }
}

template <class R> constexpr R one_over_factorial(int n) {
  R f = 1;
  for (int i = 2; i <= n; ++i) f *= R(i);
  return 1 / f;
}

// Both keep a NaN x.
template <class V, class R> inline V at_least(V x, R low) { return x < low ? low - V{} : x; }
template <class V, class R> inline V at_most(V x, R high) { return x > high ? high - V{} : x; }

// x 2^n, where `shifted` is n + kRound. The power comes in two factors, so that subnormal results
// and infinities come out right.
template <class V> inline V scale(V x, V shifted) {
  using R = std::remove_reference_t<decltype(x[0])>;
  using L = Lanes<R>;
  using Int = typename L::Int;
  using Bits = typename L::Bits;
  const Int n = (Int)((Bits)shifted - (Bits)all<R>(L::kRound));
  const Int half = n >> 1;
  const V first = (V)((Bits)(half + L::kBias) << L::kMantissa);
  const V second = (V)((Bits)(n - half + L::kBias) << L::kMantissa);
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
                                            (__m512)(shifted - Lanes<float>::kRound));
}
inline Vec<float> reciprocal(Vec<float> x) {
  const __m512 v = (__m512)x, y = _mm512_maskz_rcp14_ps(kEvery, v), one = _mm512_set1_ps(1);
  const __mmask16 finite = _mm512_cmp_ps_mask(v, _mm512_set1_ps(__builtin_inff()), _CMP_NEQ_UQ);
  return (Vec<float>)_mm512_maskz_fmadd_ps(finite, y, _mm512_fnmadd_ps(v, y, one), y);
}
#endif

// e^x = 2^n e^r with |r| <= ln(2)/2, where the Taylor series to kTerms is exact to the last place.
template <class V> inline V exp_(V x) {
  using R = std::remove_reference_t<decltype(x[0])>;
  using L = Lanes<R>;
  x = at_most(at_least(x, L::kLow), L::kHigh);
  const V shifted = x * L::kLog2e + L::kRound;
  const V n = shifted - L::kRound;
  const V r = (x - n * L::kLn2High) - n * L::kLn2Low;
  V series = all<R>(one_over_factorial<R>(L::kTerms));
#pragma GCC unroll 16
  for (int i = L::kTerms - 1; i >= 2; --i) series = series * r + one_over_factorial<R>(i);
  return scale(r * r * series + r + R(1), shifted);
}

template <class V> inline V sigmoid(V x) { return reciprocal(1 + exp_(-x)); }
template <class V> inline V silu(V x) { return x * sigmoid(x); }
// d silu / dx, given sigmoid(x).
template <class V> inline V silu_slope(V x, V s) { return s * (1 + x * (1 - s)); }

}  // namespace
}  // namespace lrnn::kernels::rows
