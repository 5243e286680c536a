#pragma once
#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/types.h"

// Vectors as wide as the instruction set this is compiled for, on the compiler's vector types;
// LRNN_ISA is its namespace. Everything here has internal linkage: were two instruction sets to
// share a symbol, the linker would keep either one for both.
namespace lrnn::kernels::LRNN_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
// 32 registers with AVX-512, 16 before. NEON has 32 as well, but what they gain was never timed.
constexpr bool kManyRegisters = kVectorBytes == 64;

// `loose` is the type in memory, for GCC 12 makes better loops of it than of memcpy.
template <class F> struct VecOf;
template <> struct VecOf<float> {
  typedef float type __attribute__((vector_size(kVectorBytes)));
  typedef float loose
      __attribute__((vector_size(kVectorBytes), aligned(alignof(float)), may_alias));
  typedef int32_t Int __attribute__((vector_size(kVectorBytes)));
  typedef uint32_t Bits __attribute__((vector_size(kVectorBytes)));
};
template <> struct VecOf<double> {
  typedef double type __attribute__((vector_size(kVectorBytes)));
  typedef double loose
      __attribute__((vector_size(kVectorBytes), aligned(alignof(double)), may_alias));
  typedef int64_t Int __attribute__((vector_size(kVectorBytes)));
  typedef uint64_t Bits __attribute__((vector_size(kVectorBytes)));
};
template <class F> using Vec = typename VecOf<F>::type;
template <class F> constexpr int kLanes = kVectorBytes / int(sizeof(F));

template <class F> [[gnu::always_inline]] inline Vec<F> splat(F x) { return x - Vec<F>{}; }

// ---------------------------------------------------------------------------------- bfloat16
// To nearest, ties to even; every NaN becomes the quiet one, 0x7fc0, as in torch. Bits is uint32_t
// for a float and a vector of them for a vector.
template <class Bits, class X> [[gnu::always_inline]] inline Bits upper_half(X x) {
  const Bits u = __builtin_bit_cast(Bits, x);
  return x == x ? (u + 0x7fff + ((u >> 16) & 1)) >> 16 : Bits{} + 0x7fc0;
}

template <class F, class IO> [[gnu::always_inline]] inline F widen(IO x) {
  if constexpr (std::is_same_v<F, IO>)
    return x;
  else
    return __builtin_bit_cast(float, uint32_t(x.bits) << 16);
}
template <class IO, class F> [[gnu::always_inline]] inline IO narrow(F x) {
  if constexpr (std::is_same_v<F, IO>)
    return x;
  else
    return {uint16_t(upper_half<uint32_t>(x))};
}

typedef uint16_t Halves __attribute__((vector_size(kVectorBytes / 2)));
[[gnu::always_inline]] inline Vec<float> widen_all(Halves h) {
  return (Vec<float>)(__builtin_convertvector(h, VecOf<float>::Bits) << 16);
}
[[gnu::always_inline]] inline Halves narrow_all(Vec<float> x) {
  return __builtin_convertvector(upper_half<VecOf<float>::Bits>(x), Halves);
}

// ------------------------------------------------------------------------------ load and store
// How much of a vector counts: all of it, or the first n lanes at the end of a row.
struct All {};
struct First {
  int64_t n;
};

template <class F, class Body> inline void over(int64_t n, Body&& body) {
  int64_t i = 0;
  for (; i + kLanes<F> <= n; i += kLanes<F>) body(i, All{});
  if (i < n) body(i, First{n - i});
}

template <class F> [[gnu::always_inline]] inline Vec<F> load(const F* p, All = {}) {
  return *reinterpret_cast<const typename VecOf<F>::loose*>(p);
}
[[gnu::always_inline]] inline Vec<float> load(const Bf16* p, All = {}) {
  Halves h;
  std::memcpy(&h, p, sizeof h);
  return widen_all(h);
}
template <class F> [[gnu::always_inline]] inline void store(F* p, Vec<F> x, All = {}) {
  *reinterpret_cast<typename VecOf<F>::loose*>(p) = x;
}
[[gnu::always_inline]] inline void store(Bf16* p, Vec<float> x, All = {}) {
  const Halves h = narrow_all(x);
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
  return widen_all((Halves)_mm256_maskz_loadu_epi16(__mmask16(mask(part)), p));
}
inline void store(float* p, Vec<float> x, First part) {
  _mm512_mask_storeu_ps(p, __mmask16(mask(part)), (__m512)x);
}
inline void store(double* p, Vec<double> x, First part) {
  _mm512_mask_storeu_pd(p, __mmask8(mask(part)), (__m512d)x);
}
inline void store(Bf16* p, Vec<float> x, First part) {
  _mm256_mask_storeu_epi16(p, __mmask16(mask(part)), (__m256i)narrow_all(x));
}
#else
template <class F> inline Vec<F> load(const F* p, First part) {
  Vec<F> x{};
  for (int i = 0; i < kLanes<F>; ++i)
    if (i < part.n) x[i] = p[i];
  return x;
}
inline Vec<float> load(const Bf16* p, First part) {
  Halves h{};
  for (int i = 0; i < kLanes<float>; ++i)
    if (i < part.n) h[i] = p[i].bits;
  return widen_all(h);
}
template <class F> inline void store(F* p, Vec<F> x, First part) {
  for (int i = 0; i < kLanes<F>; ++i)
    if (i < part.n) p[i] = x[i];
}
inline void store(Bf16* p, Vec<float> x, First part) {
  const Halves h = narrow_all(x);
  for (int i = 0; i < kLanes<float>; ++i)
    if (i < part.n) p[i].bits = h[i];
}
#endif

// ----------------------------------------------------------------------------------- arithmetic
// a b + c, rounded once where the machine can. Said explicitly in every scan, because what the
// compiler fuses depends on the code around it, and a gate of 1 must not change a bit.
template <class F> [[gnu::always_inline]] inline Vec<F> fma(Vec<F> a, Vec<F> b, Vec<F> c) {
#if defined(__AVX512F__)
  if constexpr (sizeof(F) == 4)
    return _mm512_fmadd_ps(a, b, c);
  else
    return _mm512_fmadd_pd(a, b, c);
#elif defined(__AVX2__)
  if constexpr (sizeof(F) == 4)
    return _mm256_fmadd_ps(a, b, c);
  else
    return _mm256_fmadd_pd(a, b, c);
#elif defined(__aarch64__)
  if constexpr (sizeof(F) == 4)
    return (Vec<F>)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
  else
    return (Vec<F>)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
  return a * b + c;
#endif
}

// The sum of the lanes, halves upon halves.
template <class F, int n = kLanes<F>, class V> [[gnu::always_inline]] inline F sum(V x) {
  if constexpr (n == 2) {
    return x[0] + x[1];
  } else {
    return [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
      return sum<F, n / 2>(__builtin_shufflevector(x, x, I...) +
                           __builtin_shufflevector(x, x, (I + n / 2)...));
    }
    (std::make_integer_sequence<int, n / 2>());
  }
}

template <class F, int... I>
[[gnu::always_inline]] inline void interleave(Vec<F> a, Vec<F> b, Vec<F>& low, Vec<F>& high,
                                              std::integer_sequence<int, I...>) {
  constexpr int W = kLanes<F>;
  low = __builtin_shufflevector(a, b, (I / 2 + (I % 2) * W)...);
  high = __builtin_shufflevector(a, b, (W / 2 + I / 2 + (I % 2) * W)...);
}

// Transposes a tile of W x W: log2 W perfect shuffles of the list of rows.
template <class F>
inline void transpose_tile(const F* in, int64_t in_stride, F* out, int64_t out_stride) {
  constexpr int W = kLanes<F>;
  Vec<F> r[W], s[W];
  for (int i = 0; i < W; ++i) r[i] = load(in + i * in_stride);
  for (int n = 1; n < W; n *= 2) {
    for (int i = 0; i < W / 2; ++i)
      interleave<F>(r[i], r[i + W / 2], s[2 * i], s[2 * i + 1],
                    std::make_integer_sequence<int, W>());
    for (int i = 0; i < W; ++i) r[i] = s[i];
  }
  for (int i = 0; i < W; ++i) store(out + i * out_stride, r[i]);
}

// The sums over the lanes of W vectors that lie one behind the other: lane i is that of vector i.
template <class F> inline Vec<F> lane_sums(const F* tile) {
  constexpr int W = kLanes<F>;
  alignas(64) F turned[W * W];
  transpose_tile(tile, W, turned, W);
  Vec<F> total = load(turned);
  for (int i = 1; i < W; ++i) total += load(turned + i * W);
  return total;
}

}  // namespace
}  // namespace lrnn::kernels::LRNN_ISA
