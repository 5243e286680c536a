#include <climits>

#include "tests/emulator/cases/pairs.h"

// Whole numbers at their edges, each statement beside a formula that does not lean on the host's
// own version of it.
namespace lrnn::emulator::cases {
namespace {

using i32 = int32_t;
using u32 = uint32_t;
using i64 = int64_t;
using u64 = uint64_t;
using i128 = __int128;
using u128 = unsigned __int128;

template <class T> std::vector<T> edges() {
  constexpr int kBits = 8 * sizeof(T);
  std::vector<u64> x = {0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 65, 255, 256, 0x0123456789abcdefu};
  for (const int bit : {15, 16, 30, 31, 32, 47, 62, 63})
    if (bit < kBits) x.insert(x.end(), {u64(1) << bit, (u64(1) << bit) - 1, (u64(1) << bit) + 1});
  Random random;
  for (int i = 0; i < 5; ++i) x.push_back(random());
  std::vector<T> both;
  for (const u64 v : x) both.push_back(T(v)), both.push_back(T(0 - v));
  return both;
}
template <class T> std::vector<T> not_zero() {
  std::vector<T> x;
  for (const T v : edges<T>())
    if (v != 0) x.push_back(v);
  return x;
}

// Towards zero, by sizes: what the quotient of INT_MIN and -1 would be wraps around.
i128 quotient(i128 a, i128 b) {
  const i128 x = a < 0 ? -a : a, y = b < 0 ? -b : b;
  return (a < 0) != (b < 0) ? -(x / y) : x / y;
}
LRNN_OPCODE(DivS32, "div.s32", i32, "r", i32, "r", i32, "r", return i32(quotient(x, y)););
LRNN_OPCODE(DivS64, "div.s64", i64, "l", i64, "l", i64, "l", return i64(quotient(x, y)););
LRNN_OPCODE(DivU32, "div.u32", u32, "r", u32, "r", u32, "r", return u32(quotient(x, y)););
LRNN_OPCODE(DivU64, "div.u64", u64, "l", u64, "l", u64, "l", return u64(quotient(x, y)););
LRNN_OPCODE(RemS32, "rem.s32", i32, "r", i32, "r", i32, "r", return i32(x - quotient(x, y) * y););
LRNN_OPCODE(RemS64, "rem.s64", i64, "l", i64, "l", i64, "l", return i64(x - quotient(x, y) * y););
LRNN_OPCODE(RemU64, "rem.u64", u64, "l", u64, "l", u64, "l", return u64(x - quotient(x, y) * y););

LRNN_OPCODE(HighS32, "mul.hi.s32", i32, "r", i32, "r", i32, "r", return i32((i64(x) * y) >> 32););
LRNN_OPCODE(HighU32, "mul.hi.u32", u32, "r", u32, "r", u32, "r", return u32((u64(x) * y) >> 32););
// By halves of 32 bits.
u64 high_half(u64 x, u64 y) {
  const u64 a = x >> 32, b = u32(x), c = y >> 32, d = u32(y);
  const u64 middle = a * d + (b * d >> 32), other = b * c + u32(middle);
  return a * c + (middle >> 32) + (other >> 32);
}
LRNN_OPCODE(HighU64, "mul.hi.u64", u64, "l", u64, "l", u64, "l", return high_half(x, y););
LRNN_OPCODE(HighS64, "mul.hi.s64", i64, "l", i64, "l", i64, "l",
            return i64(high_half(u64(x), u64(y)) - (x < 0 ? u64(y) : 0) - (y < 0 ? u64(x) : 0)););
LRNN_OPCODE(LowS64, "mul.lo.s64", u64, "l", u64, "l", u64, "l", return x * y;);
LRNN_OPCODE(WideS32, "mul.wide.s32", i64, "l", i32, "r", i32, "r", return i64(x) * i64(y););
LRNN_OPCODE(WideU32, "mul.wide.u32", u64, "l", u32, "r", u32, "r", return u64(x) * u64(y););

LRNN_OPCODE(MinS64, "min.s64", i64, "l", i64, "l", i64, "l", return i128(x) - y < 0 ? x : y;);
LRNN_OPCODE(MaxS64, "max.s64", i64, "l", i64, "l", i64, "l", return i128(x) - y < 0 ? y : x;);
LRNN_OPCODE(MinU64, "min.u64", u64, "l", u64, "l", u64, "l", return i128(x) - y < 0 ? x : y;);
LRNN_OPCODE(MaxU64, "max.u64", u64, "l", u64, "l", u64, "l", return i128(x) - y < 0 ? y : x;);
LRNN_OPCODE(MinS32, "min.s32", i32, "r", i32, "r", i32, "r", return i64(x) - y < 0 ? x : y;);
LRNN_OPCODE(MaxU32, "max.u32", u32, "r", u32, "r", u32, "r", return i64(x) - y < 0 ? y : x;);

// One bit at a time, so that no shift is too far.
template <class T> T shifted_left(T x, u32 by) {
  for (u32 i = 0; i < by && i < 64; ++i) x = T(x * 2);
  return x;
}
template <class T> T shifted_right(T x, u32 by) {
  i128 wide = x;
  for (u32 i = 0; i < by && i < 64; ++i) wide = (wide - (wide % 2 != 0 && wide < 0)) / 2;
  return T(wide);
}
LRNN_OPCODE(ShlB32, "shl.b32", u32, "r", u32, "r", u32, "r", return shifted_left(x, y););
LRNN_OPCODE(ShlB64, "shl.b64", u64, "l", u64, "l", u32, "r", return shifted_left(x, y););
LRNN_OPCODE(ShrU32, "shr.u32", u32, "r", u32, "r", u32, "r", return shifted_right(x, y););
LRNN_OPCODE(ShrS32, "shr.s32", i32, "r", i32, "r", u32, "r", return shifted_right(x, y););
LRNN_OPCODE(ShrU64, "shr.u64", u64, "l", u64, "l", u32, "r", return shifted_right(x, y););
LRNN_OPCODE(ShrS64, "shr.s64", i64, "l", i64, "l", u32, "r", return shifted_right(x, y););

// A field of bits: where it begins and how long it is, as the manual's loop says it.
#define LRNN_FIELD(NAME, T, LETTER, TYPE)                                                          \
  struct NAME {                                                                                    \
    using In = T;                                                                                  \
    using By = u32;                                                                                \
    using Out = T;                                                                                 \
    static __device__ T on_gpu(T x, u32 field) {                                                   \
      T taken, put;                                                                                \
      asm volatile("bfe." TYPE " %0, %1, %2, %3;\n"                                                \
                   : "=" LETTER(taken)                                                             \
                   : LETTER(x), "r"(field >> 8), "r"(field & 255));                                \
      asm volatile("bfi.b%5 %0, %1, %2, %3, %4;\n"                                                 \
                   : "=" LETTER(put)                                                               \
                   : LETTER(x), LETTER(T(0x5a5a1234c3c3f00fu)), "r"(field >> 8), "r"(field & 255), \
                     "n"(8 * sizeof(T)));                                                          \
      return taken ^ T(u64(put) * 3);                                                              \
    }                                                                                              \
    static T wanted(T x, u32 field) {                                                              \
      const u32 bits = 8 * sizeof(T), at = field >> 8, length = field & 255;                       \
      const u32 top = at + length - 1 < bits - 1 ? at + length - 1 : bits - 1;                     \
      const bool sign = T(-1) < T(1) && length > 0 && (u64(x) >> top & 1);                         \
      u64 taken = 0, put = u64(T(0x5a5a1234c3c3f00fu));                                            \
      for (u32 i = 0; i < bits; ++i)                                                               \
        taken |= u64(i < length && at + i < bits ? u64(x) >> (at + i) & 1 : sign) << i;            \
      for (u32 i = 0; i < length && at + i < bits; ++i)                                            \
        put = (put & ~(u64(1) << (at + i))) | (u64(x) >> i & 1) << (at + i);                       \
      return T(taken) ^ T(put * 3);                                                                \
    }                                                                                              \
  }
LRNN_FIELD(FieldU32, u32, "r", "u32");
LRNN_FIELD(FieldS32, i32, "r", "s32");
LRNN_FIELD(FieldU64, u64, "l", "u64");
LRNN_FIELD(FieldS64, i64, "l", "s64");
std::vector<u32> fields() {
  std::vector<u32> all;
  for (const u32 at : {0, 1, 5, 31, 32, 40, 63, 64, 200})
    for (const u32 length : {0, 1, 8, 31, 32, 33, 63, 64, 255}) all.push_back(at << 8 | length);
  return all;
}

// Words of 32 bits: counts, orders of bits and bytes. `y` chooses what is asked.
struct Bits {
  using In = u32;
  using By = u32;
  using Out = u32;
  static __device__ u32 on_gpu(u32 x, u32 y) {
    u32 picked;
    asm volatile("prmt.b32 %0, %1, %2, %3;\n" : "=r"(picked) : "r"(x), "r"(~x * 5), "r"(y));
    return u32(__clz(int(x))) + __brev(x) * 3 + u32(__popc(x)) * 64 + u32(__ffs(int(x))) * 4096 +
           picked * 7;
  }
  static u32 wanted(u32 x, u32 y) {
    u32 zeros = 0, reversed = 0, ones = 0, first = 0, picked = 0;
    while (zeros < 32 && !(x >> (31 - zeros) & 1)) ++zeros;
    for (u32 i = 0; i < 32; ++i) {
      reversed = reversed * 2 + (x >> i & 1), ones += x >> i & 1;
      if (!first && x >> i & 1) first = i + 1;
    }
    const u32 words[2] = {x, ~x * 5};
    for (u32 i = 0; i < 4; ++i) {
      const u32 nibble = y >> (4 * i) & 15, which = nibble & 7;
      u32 byte = words[which / 4] >> (which % 4 * 8) & 255;
      if (nibble & 8) byte = byte >= 128 ? 255 : 0;
      picked += byte << (8 * i);
    }
    return zeros + reversed * 3 + ones * 64 + first * 4096 + picked * 7;
  }
};
struct Funnels {
  using In = u64;
  using By = u32;
  using Out = u32;
  static __device__ u32 on_gpu(u64 x, u32 by) {
    const u32 low = u32(x), high = u32(x >> 32);
    return __funnelshift_l(low, high, by) + 3 * __funnelshift_lc(low, high, by) +
           5 * __funnelshift_r(low, high, by) + 7 * __funnelshift_rc(low, high, by);
  }
  static u32 wanted(u64 x, u32 by) {
    const auto left = [&](u32 n) { return u32(shifted_left(x, n) >> 32); };
    const auto right = [&](u32 n) { return u32(shifted_right(x, n)); };
    const u32 wrapped = by % 32, clamped = by < 32 ? by : 32;
    return left(wrapped) + 3 * left(clamped) + 5 * right(wrapped) + 7 * right(clamped);
  }
};

// Comparisons with a second predicate, their opposites, and words of bits by a table.
struct Predicates {
  using In = i32;
  using By = i32;
  using Out = u32;
  static __device__ u32 on_gpu(i32 x, i32 y) {
    u32 first, second, other, table;
    asm volatile(
        "{\n.reg .pred p, q, r;\nsetp.gt.s32 r, %6, 0;\nsetp.lt.xor.s32 p|q, %5, %6, !r;\n"
        "selp.u32 %0, 1, 0, p;\nselp.u32 %1, 2, 0, q;\nsetp.hs.and.u32 p, %5, %6, r;\n"
        "mov.u32 %2, 0;\n@!p mov.u32 %2, 4;\nlop3.b32 %3, %5, %6, %4, 0x2d;\n}\n"
        : "=&r"(first), "=&r"(second), "=&r"(other), "=&r"(table)
        : "r"(0x0f0f5533), "r"(x), "r"(y));
    return first + second + other + table * 8;
  }
  static u32 wanted(i32 x, i32 y) {
    const bool above = y > 0, less = i64(x) - y < 0, no_less = u64(u32(x)) >= u64(u32(y));
    u32 table = 0;
    for (int i = 0; i < 32; ++i) {
      const u32 which = (u32(x) >> i & 1) * 4 + (u32(y) >> i & 1) * 2 + (0x0f0f5533u >> i & 1);
      table |= (0x2du >> which & 1) << i;
    }
    return (less != !above) + 2 * (!less != !above) + (no_less && above ? 0 : 4) + table * 8;
  }
};
// What is narrower than its register fills it with its sign.
struct Narrow {
  using In = i32;
  using By = i32;
  using Out = i32;
  static __device__ i32 on_gpu(i32 x, i32) {
    i32 of_8, of_16;
    asm volatile("{\n.reg .b16 t;\ncvt.s8.s32 t, %1;\ncvt.s32.s16 %0, t;\n}\n"
                 : "=r"(of_8)
                 : "r"(x));
    asm volatile("cvt.s16.s32 %0, %1;\n" : "=r"(of_16) : "r"(x));
    return of_8 * 3 + of_16;
  }
  static i32 wanted(i32 x, i32) {
    const i32 low = (x % 256 + 256) % 256, half = (x % 65536 + 65536) % 65536;
    return (low < 128 ? low : low - 256) * 3 + (half < 32768 ? half : half - 65536);
  }
};

// Types of every width in one expression, as the two compilers understand it.
struct Mixed {
  using In = i64;
  using By = i64;
  using Out = i64;
  static __host__ __device__ i64 both(i64 x, i64 y) {
    const auto a = int8_t(x), b = int8_t(y >> 3);
    const auto c = uint8_t(x >> 5), d = uint8_t(y);
    const auto e = int16_t(x * 3), f = int16_t(y ^ x);
    const auto g = uint16_t(x + y), h = uint16_t(y * 7);
    const auto k = u32(x), m = u32(y);
    i64 sum = int8_t(a + b) + int16_t(e * f) * 3 + uint8_t(c - d) + uint16_t(g - h);
    sum += (a < b ? int8_t(c) : int8_t(d)) + i64(int16_t(g)) * uint16_t(f);
    sum ^= i64(k / (m | 1)) + i64(k % (d | 1u)) - e / (b | 1) + f % (a | 1);
    sum += i64(u64(x) / (u64(y) | 1)) ^ x % (i64(h) + 1);
    sum = sum * 5 + (i32(k) < i32(m)) + 2 * (k < m) + 4 * (x < y) + 8 * (u64(x) < u64(y));
    sum += uint16_t(g << (d % 16)) + int16_t(e >> (c % 16)) + (k << (m % 32)) + (x >> (h % 64));
    return sum + (a == int8_t(c) ? e : f) + (k & m) - i64(k | u32(h)) + i64(~m ^ k);
  }
  static __device__ i64 on_gpu(i64 x, i64 y) { return both(x, y); }
  static i64 wanted(i64 x, i64 y) { return both(x, y); }
};

bool divisions() {
  return agrees<DivS32>("div.s32", edges<i32>(), not_zero<i32>()) &
         agrees<DivU32>("div.u32", edges<u32>(), not_zero<u32>()) &
         agrees<DivS64>("div.s64", edges<i64>(), not_zero<i64>()) &
         agrees<DivU64>("div.u64", edges<u64>(), not_zero<u64>()) &
         agrees<RemS32>("rem.s32", edges<i32>(), not_zero<i32>()) &
         agrees<RemS64>("rem.s64", edges<i64>(), not_zero<i64>()) &
         agrees<RemU64>("rem.u64", edges<u64>(), not_zero<u64>());
}
bool products() {
  return agrees<HighS32>("mul.hi.s32", edges<i32>(), edges<i32>()) &
         agrees<HighU32>("mul.hi.u32", edges<u32>(), edges<u32>()) &
         agrees<HighS64>("mul.hi.s64", edges<i64>(), edges<i64>()) &
         agrees<HighU64>("mul.hi.u64", edges<u64>(), edges<u64>()) &
         agrees<LowS64>("mul.lo.s64", edges<u64>(), edges<u64>()) &
         agrees<WideS32>("mul.wide.s32", edges<i32>(), edges<i32>()) &
         agrees<WideU32>("mul.wide.u32", edges<u32>(), edges<u32>());
}
bool least_and_most() {
  return agrees<MinS64>("min.s64", edges<i64>(), edges<i64>()) &
         agrees<MaxS64>("max.s64", edges<i64>(), edges<i64>()) &
         agrees<MinU64>("min.u64", edges<u64>(), edges<u64>()) &
         agrees<MaxU64>("max.u64", edges<u64>(), edges<u64>()) &
         agrees<MinS32>("min.s32", edges<i32>(), edges<i32>()) &
         agrees<MaxU32>("max.u32", edges<u32>(), edges<u32>());
}
bool shifts() {
  return agrees<ShlB32>("shl.b32", edges<u32>(), edges<u32>()) &
         agrees<ShlB64>("shl.b64", edges<u64>(), edges<u32>()) &
         agrees<ShrU32>("shr.u32", edges<u32>(), edges<u32>()) &
         agrees<ShrS32>("shr.s32", edges<i32>(), edges<u32>()) &
         agrees<ShrU64>("shr.u64", edges<u64>(), edges<u32>()) &
         agrees<ShrS64>("shr.s64", edges<i64>(), edges<u32>()) &
         agrees<Funnels>("shf", edges<u64>(), edges<u32>());
}
bool bits() {
  return agrees<FieldU32>("bfe.u32, bfi.b32", edges<u32>(), fields()) &
         agrees<FieldS32>("bfe.s32, bfi.b32", edges<i32>(), fields()) &
         agrees<FieldU64>("bfe.u64, bfi.b64", edges<u64>(), fields()) &
         agrees<FieldS64>("bfe.s64, bfi.b64", edges<i64>(), fields()) &
         agrees<Bits>("clz, brev, popc, bfind, prmt", edges<u32>(),
                      {0x3210, 0x7654, 0x0123, 0xfedc, 0x8a19, 0x5bd2, 0, 0xffff});
}

}  // namespace

Cases integer_cases() {
  return {
      {"divisions", "", divisions},
      {"products", "", products},
      {"least_and_most", "", least_and_most},
      {"shifts", "", shifts},
      {"bits", "", bits},
      {"predicates", "",
       [] { return agrees<Predicates>("predicates", edges<i32>(), edges<i32>()); }},
      {"narrow_results", "", [] { return agrees<Narrow>("narrow results", edges<i32>(), {0}); }},
      {"every_width", "", [] { return agrees<Mixed>("every width", edges<i64>(), edges<i64>()); }},
  };
}

}  // namespace lrnn::emulator::cases
