#include <cuda_bf16.h>

#include <cfloat>
#include <cmath>
#include <limits>

#include "kernels/cuda/tile/mma.cuh"
#include "tests/emulator/cases/pairs.h"

// Roundings, conversions, and what becomes of NaN.
namespace lrnn::emulator::cases {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

enum How { kNearest, kToZero, kDown, kUp };

// To a whole number, from what lies below and above.
template <class F> F whole(F x, How how) {
  if (!(std::fabs(x) < F(1e15))) return x;
  F below = F(int64_t(x));
  if (below > x) below -= 1;
  const F part = x - below;  // exact
  const bool odd = int64_t(below) % 2 != 0;
  const bool up = how == kUp       ? part > 0
                  : how == kDown   ? false
                  : how == kToZero ? x < 0 && part > 0
                                   : part > F(0.5) || (part == F(0.5) && odd);
  return std::copysign(up ? below + 1 : below, x);
}

// `cvt` to whole numbers: what does not fit becomes the nearest that does. NaN becomes 0 where both
// types have 32 bits, and else the number whose highest bit alone is set.
template <class To, class From> To to_whole(From x, How how) {
  constexpr bool kWide = sizeof(From) == 8 || sizeof(To) == 8;
  if (x != x) return kWide ? To(uint64_t(1) << (8 * sizeof(To) - 1)) : To(0);
  const long double y = whole(static_cast<long double>(x), how);
  if (y <= static_cast<long double>(std::numeric_limits<To>::min()))
    return std::numeric_limits<To>::min();
  if (y >= static_cast<long double>(std::numeric_limits<To>::max()))
    return std::numeric_limits<To>::max();
  return To(y);
}
#define LRNN_TO_WHOLE(NAME, TO, FROM, KIND)                                 \
  struct NAME {                                                             \
    using In = FROM;                                                        \
    using By = int;                                                         \
    using Out = TO;                                                         \
    static __device__ TO on_gpu(FROM x, int how) {                          \
      return how == kNearest  ? __##KIND##_rn(x)                            \
             : how == kToZero ? __##KIND##_rz(x)                            \
             : how == kDown   ? __##KIND##_rd(x)                            \
                              : __##KIND##_ru(x);                             \
    }                                                                       \
    static TO wanted(FROM x, int how) { return to_whole<TO>(x, How(how)); } \
  }
using Long = long long;
using UnsignedLong = unsigned long long;
LRNN_TO_WHOLE(FloatToInt, int, float, float2int);
LRNN_TO_WHOLE(FloatToUint, unsigned, float, float2uint);
LRNN_TO_WHOLE(FloatToLong, Long, float, float2ll);
LRNN_TO_WHOLE(FloatToUlong, UnsignedLong, float, float2ull);
LRNN_TO_WHOLE(DoubleToInt, int, double, double2int);
LRNN_TO_WHOLE(DoubleToLong, Long, double, double2ll);

struct Whole {  // cvt.rni.f32.f32 and the others
  using In = float;
  using By = int;
  using Out = float;
  static __device__ float on_gpu(float x, int how) {
    return how == kNearest  ? rintf(x)
           : how == kToZero ? truncf(x)
           : how == kDown   ? floorf(x)
                            : ceilf(x);
  }
  static float wanted(float x, int how) { return whole(x, How(how)); }
};

template <class F> std::vector<F> halves() {
  std::vector<F> x = {0,
                      F(0.25),
                      F(0.5),
                      F(0.75),
                      1,
                      F(1.5),
                      F(2.5),
                      F(3.5),
                      F(1e-30),
                      F(8388607.5),
                      F(16777216),
                      F(1e10),
                      F(3e9),
                      F(2147483520.),
                      F(2147483648.),
                      F(4294967296.),
                      F(4294967040.),
                      F(9223372036854775808.),
                      F(2e19),
                      F(1e30),
                      F(kInf)};
  const size_t count = x.size();
  for (size_t i = 0; i < count; ++i) x.push_back(-x[i]);
  return x;
}
template <class F> std::vector<F> halves_and_nan() {
  auto x = halves<F>();
  x.push_back(F(kNan));
  return x;
}
const std::vector<int> kRoundings = {kNearest, kToZero, kDown, kUp};

bool to_whole_numbers() {
  return agrees<FloatToInt>("float to int", halves_and_nan<float>(), kRoundings) &
         agrees<FloatToUint>("float to unsigned", halves_and_nan<float>(), kRoundings) &
         agrees<FloatToLong>("float to long", halves<float>(), kRoundings) &
         agrees<FloatToUlong>("float to unsigned long", halves<float>(), kRoundings) &
         agrees<DoubleToInt>("double to int", halves<double>(), kRoundings) &
         agrees<DoubleToLong>("double to long", halves<double>(), kRoundings) &
         agrees<Whole>("whole floats", halves<float>(), kRoundings);
}
bool nan_to_whole_numbers() {
  return agrees<FloatToLong>("float to long", {kNan}, kRoundings) &
         agrees<FloatToUlong>("float to unsigned long", {kNan}, kRoundings) &
         agrees<DoubleToInt>("double to int", {double(kNan)}, kRoundings) &
         agrees<DoubleToLong>("double to long", {double(kNan)}, kRoundings);
}

// a b + c of floats, rounded in each direction. With these numbers 64 digits hold the exact sum.
struct Fused {
  using In = float3;
  using By = int;
  using Out = float;
  static __device__ float on_gpu(float3 x, int how) {
    return how == kNearest  ? __fmaf_rn(x.x, x.y, x.z)
           : how == kToZero ? __fmaf_rz(x.x, x.y, x.z)
           : how == kDown   ? __fmaf_rd(x.x, x.y, x.z)
                            : __fmaf_ru(x.x, x.y, x.z);
  }
  static float wanted(float3 x, int how) {
    const long double exact = static_cast<long double>(x.x) * static_cast<long double>(x.y) + x.z;
    int exponent;
    std::frexp(exact, &exponent);
    const long double unit = std::ldexp(1.0L, exponent - 24);
    return float(whole(exact / unit, How(how)) * unit);
  }
};
bool fused() {
  Random random;
  std::vector<float3> x;
  for (int i = 0; i < 500; ++i) {
    const auto digits = [&] { return float(random.below(1 << 24) - (1 << 23)) / (1 << 20); };
    x.push_back({digits(), digits(), digits()});
  }
  return agrees<Fused>("fma", x, kRoundings);
}

// To bfloat16: the nearer of the two neighbours, of equally near ones the even one.
uint32_t nearest_bf16(float x) {
  if (x != x) return 0x7fff;
  const uint32_t bits = __builtin_bit_cast(uint32_t, x), low = bits >> 16;
  if (std::fabs(x) == kInf) return low;
  const auto value = [](uint32_t b) {  // infinity is where the next number would be
    if ((b & 0x7fff) == 0x7f80) return std::copysign(std::ldexp(1.0, 128), b >> 15 ? -1.0 : 1.0);
    return double(__builtin_bit_cast(float, b << 16));
  };
  const double below = std::fabs(double(x) - value(low)),
               above = std::fabs(value(low + 1) - double(x));
  return below < above || (below == above && low % 2 == 0) ? low : low + 1;
}
struct ToBf16 {  // both statements that make one, and back
  using In = float;
  using By = float;
  using Out = uint64_t;
  static __device__ uint64_t on_gpu(float x, float y) {
    uint16_t one;
    asm volatile("cvt.rn.bf16.f32 %0, %1;\n" : "=h"(one) : "f"(y));
    const uint32_t two = kernels::cuda::pack(x, y);
    const float back = __bfloat162float(__ushort_as_bfloat16(one));
    return uint64_t(two) << 16 | one | uint64_t(__float_as_uint(back) >> 16) << 48;
  }
  static uint64_t wanted(float x, float y) {
    const uint64_t of_x = nearest_bf16(x), of_y = nearest_bf16(y);
    return of_y << 32 | of_x << 16 | of_y | of_y << 48;
  }
};
std::vector<float> near_ties() {
  std::vector<float> x = {0, FLT_MAX, kInf, kNan, FLT_MIN, 1e-45f};
  for (const uint32_t high : {0x3f80u, 0x3f81u, 0x4000u, 0x7f7eu, 0x7f7fu, 0x0001u, 0x42ffu})
    for (const uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      x.push_back(__builtin_bit_cast(float, high << 16 | low));
  const size_t count = x.size();
  for (size_t i = 0; i < count; ++i)
    if (x[i] == x[i]) x.push_back(-x[i]);
  return x;
}
bool to_bf16() { return agrees<ToBf16>("float to bfloat16", near_ties(), near_ties()); }

// Between bfloat16 and whole numbers, which Hopper has statements for.
struct WholeBf16 {
  using In = int;
  using By = float;
  using Out = float;
  static __device__ float on_gpu(int x, float) { return __bfloat162float(__int2bfloat16_rn(x)); }
  static float wanted(int x, float) { return float(x); }
};
bool whole_bf16() { return agrees<WholeBf16>("int to bfloat16", {0, 1, -3, 200, -256}, {0}); }

// What the compiler makes of functions: long walks through the statements above.
__host__ __device__ double far(double x, double y) {
  return x / y + exp(-y) + log(y + 1) * sqrt(y) + tanh(x) * cbrt(y);
}
__host__ __device__ float near(float x, float y) {
  return x / y + expf(-y) + logf(y + 1) * sqrtf(y) + tanhf(x) * erff(y) + powf(y, x);
}
__global__ void functions_of(const float* in, float* floats, double* doubles) {
  const float x = in[threadIdx.x], y = in[threadIdx.x + 1];
  floats[threadIdx.x] = near(x, y), doubles[threadIdx.x] = far(double(x), double(y));
}
bool functions() {
  std::vector<float> x;
  Random random;
  for (int i = 0; i < 129; ++i) x.push_back(float(1 + random.below(4000)) / 1024);
  const Array<float> in(x), floats(128);
  const Array<double> doubles(128);
  functions_of<<<1, 128>>>(in.data(), floats.data(), doubles.data());
  const auto f = floats.values();
  const auto d = doubles.values();
  for (size_t i = 0; i < 128; ++i) {
    const double a = near(x[i], x[i + 1]), b = far(double(x[i]), double(x[i + 1]));
    if (!(std::fabs(double(f[i]) - a) <= 2e-6 * a && std::fabs(d[i] - b) <= 1e-14 * b)) {
      std::printf("of %g, %g: %g, not %g; %g, not %g\n", double(x[i]), double(x[i + 1]),
                  double(f[i]), a, d[i], b);
      return false;
    }
  }
  return true;
}

// Comparisons and extremes: NaN is neither less nor equal nor more, and min and max pass it over.
struct Compare {
  using In = float;
  using By = float;
  using Out = uint32_t;
  static __device__ uint32_t on_gpu(float x, float y) {
    const bool unordered_less = !(x >= y), unordered_equal = !(x < y || x > y);
    return (x < y) + 2 * (x <= y) + 4 * (x > y) + 8 * (x >= y) + 16 * (x == y) + 32 * (x != y) +
           64 * unordered_less + 128 * unordered_equal;
  }
  static uint32_t wanted(float x, float y) {
    if (x != x || y != y) return 32 + 64 + 128;
    const double d = x == y ? 0 : double(x) - double(y);
    return d < 0 ? 1 + 2 + 32 + 64 : d > 0 ? 4 + 8 + 32 : 2 + 8 + 16 + 128;
  }
};
struct Extremes {
  using In = float;
  using By = float;
  using Out = float;
  static __device__ float on_gpu(float x, float y) { return fminf(x, y) + 3 * fmaxf(x, y); }
  static float wanted(float x, float y) {
    if (x != x || y != y) return x != x ? (y != y ? kNan : y + 3 * y) : x + 3 * x;
    return x < y ? x + 3 * y : y + 3 * x;
  }
};
LRNN_OPCODE(LeastWithNan, "min.NaN.f32", float, "f", float, "f", float, "f",
            return x != x || y != y ? __builtin_bit_cast(float, 0x7fffffffu)
                   : x < y          ? x
                                    : y;);
LRNN_OPCODE(BoundedSum, "add.sat.f32", float, "f", float, "f", float, "f", const float sum = x + y;
            return sum > 1   ? 1
                   : sum > 0 ? sum
                             : 0;);
std::vector<float> plain() { return {0, 1, -1, 2.5f, 0.25f, -0.125f, 1e20f}; }
std::vector<float> with_nan() {
  auto x = plain();
  x.push_back(kNan);
  return x;
}
bool comparisons() {
  return agrees<Compare>("comparisons", with_nan(), with_nan()) &
         agrees<Extremes>("min and max", plain(), with_nan()) &
         agrees<BoundedSum>("add.sat", plain(), plain());
}

}  // namespace

Cases float_cases() {
  return {
      {"to_whole_numbers", "", to_whole_numbers},
      {"nan_to_whole_numbers", "", nan_to_whole_numbers},
      {"fused", "", fused},
      {"to_bfloat16", "", to_bf16},
      {"whole_bfloat16", "does not know this opcode", whole_bf16},
      {"functions", "", functions},
      {"comparisons", "", comparisons},
      {"nan_in_sum", "", [] { return agrees<BoundedSum>("add.sat", plain(), {kNan}); }},
      {"nan_in_min", "", [] { return agrees<LeastWithNan>("min.NaN", plain(), with_nan()); }},
  };
}

}  // namespace lrnn::emulator::cases
