#pragma once
// Vectors for the files that are compiled once per instruction set, of which LRNN_ISA is the
// namespace. Everything has internal linkage: were two instruction sets to share a symbol, the
// linker would keep either one for both.
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/types.h"

#if defined(__AVX512F__)
#define LRNN_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define LRNN_VECTOR_BYTES 32
#else
#define LRNN_VECTOR_BYTES 16
#endif

namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class F> struct VecOf {
  typedef F type __attribute__((vector_size(LRNN_VECTOR_BYTES)));
  typedef F loose __attribute__((vector_size(LRNN_VECTOR_BYTES), aligned(alignof(F)), may_alias));
};
template <class F> using Vec = typename VecOf<F>::type;
template <class F> constexpr int kLanes = LRNN_VECTOR_BYTES / int(sizeof(F));
// 32 registers with AVX-512, 16 before.
constexpr bool kManyRegisters = LRNN_VECTOR_BYTES == 64;

template <class F> [[gnu::always_inline]] inline Vec<F> load(const F* p) {
  return *reinterpret_cast<const typename VecOf<F>::loose*>(p);
}
template <class F> [[gnu::always_inline]] inline void store(F* p, Vec<F> x) {
  *reinterpret_cast<typename VecOf<F>::loose*>(p) = x;
}
// a b + c, rounded once where the machine can. Said explicitly in every scan, because what the
// compiler fuses depends on the code around it, and a gate of 1 must not change a bit.
template <class F> [[gnu::always_inline]] inline Vec<F> fma(Vec<F> a, Vec<F> b, Vec<F> c) {
#if LRNN_VECTOR_BYTES == 64
  if constexpr (sizeof(F) == 4)
    return _mm512_fmadd_ps(a, b, c);
  else
    return _mm512_fmadd_pd(a, b, c);
#elif LRNN_VECTOR_BYTES == 32
  if constexpr (sizeof(F) == 4)
    return _mm256_fmadd_ps(a, b, c);
  else
    return _mm256_fmadd_pd(a, b, c);
#else
  return a * b + c;
#endif
}
template <class F> [[gnu::always_inline]] inline Vec<F> splat(F x) { return x - Vec<F>{}; }
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

// bfloat16 is the upper half of a float; rounding is to nearest, ties to even, and NaN stays NaN.
template <class F> [[gnu::always_inline]] inline F widen(F x) { return x; }
template <class F> [[gnu::always_inline]] inline F widen(Bf16 x) {
  const uint32_t bits = uint32_t(x.bits) << 16;
  float y;
  std::memcpy(&y, &bits, 4);
  return y;
}
[[gnu::always_inline]] inline void narrow(float x, float& y) { y = x; }
[[gnu::always_inline]] inline void narrow(double x, double& y) { y = x; }
[[gnu::always_inline]] inline void narrow(float x, Bf16& y) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  y.bits = uint16_t((bits & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : rounded);
}

template <class F, class IO> inline void read_row(const IO* in, int64_t n, F* out) {
  int64_t i = 0;
  if constexpr (std::is_same_v<F, IO>)
    for (; i + kLanes<F> <= n; i += kLanes<F>) store(out + i, load(in + i));
  for (; i < n; ++i) out[i] = widen<F>(in[i]);
}
template <class F, class IO> inline void write_row(const F* in, int64_t n, IO* out) {
  int64_t i = 0;
  if constexpr (std::is_same_v<F, IO>)
    for (; i + kLanes<F> <= n; i += kLanes<F>) store(out + i, load(in + i));
  for (; i < n; ++i) narrow(in[i], out[i]);
}
// out = factor * in over a multiple of the lanes.
template <class F> inline void scale_row(F factor, const F* in, int64_t n, F* out) {
  for (int64_t i = 0; i < n; i += kLanes<F>) store(out + i, factor * load(in + i));
}

// Decayed states reach denormals, on which some machines are a hundred times slower. Flushes them
// to zero while it lives.
class FlushDenormals {
 public:
#if defined(__SSE2__)
  FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040); }
  ~FlushDenormals() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#else
  FlushDenormals() {}
#endif
};

}  // namespace
}  // namespace lrnn::kernels::LRNN_ISA
