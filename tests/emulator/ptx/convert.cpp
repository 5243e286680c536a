#include <cmath>
#include <limits>

#include "tests/emulator/ptx/decode.h"

// From one type to another.
namespace lrnn::emulator {
namespace {

enum Rounding { kNearest, kToZero, kDown, kUp, kAsIs };

template <class T> T rounded(T x, int how) {
  switch (how) {
    case kNearest: return std::nearbyint(x);
    case kToZero: return std::trunc(x);
    case kDown: return std::floor(x);
    case kUp: return std::ceil(x);
    default: return x;
  }
}

// Floating point to whole numbers: what does not fit becomes the nearest that does. NaN gives 0
// from 32 bits to 32 or fewer, else the highest bit alone.
template <class To, class From> To to_integer(From x, int how) {
  constexpr bool kNarrow = sizeof(From) == 4 && sizeof(To) <= 4;
  if (x != x) return kNarrow ? To(0) : To(std::make_unsigned_t<To>(1) << (8 * sizeof(To) - 1));
  x = rounded(x, how);
  constexpr auto kLow = std::numeric_limits<To>::min(), kHigh = std::numeric_limits<To>::max();
  if (x <= From(kLow)) return kLow;
  if (x >= From(kHigh)) return kHigh;
  return To(x);
}

template <class To, class From, bool kSaturate, class CellFrom = Cell<From>>
void convert(Warp& w, const Instruction& i) {
  auto* const d = w.at<Cell<To>>(i.d);
  const auto* const a = w.at<CellFrom>(i.a);
  const int how = int(i.number);
  each(w.exec, [=](int l) {
    const auto x = From(a[l]);
    To y;
    if constexpr (std::is_floating_point_v<From> && !std::is_floating_point_v<To>) {
      y = to_integer<To>(x, how);
    } else if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, From>) {
      y = rounded(x, how);
      if (kSaturate) y = y > 0 ? std::min(y, To(1)) : To(0);  // NaN becomes 0
    } else {
      y = To(x);
      if constexpr (std::is_floating_point_v<To> && kSaturate)
        y = y > 0 ? std::min(y, To(1)) : To(0);
    }
    d[l] = put<To>(y);
  });
}

uint32_t to_bf16(float x) {  // to nearest, ties to even
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}
void two_bf16(Warp& w, const Instruction& i) {
  auto* const d = w.at(i.d);
  const auto *const high = w.at<float>(i.a), *const low = w.at<float>(i.b);
  each(w.exec, [=](int l) { d[l] = to_bf16(high[l]) << 16 | to_bf16(low[l]); });
}
void one_bf16(Warp& w, const Instruction& i) {
  auto* const d = w.at(i.d);
  const auto* const a = w.at<float>(i.a);
  each(w.exec, [=](int l) { d[l] = to_bf16(a[l]); });
}
void from_bf16(Warp& w, const Instruction& i) {
  auto *const d = w.at(i.d), *const a = w.at(i.a);
  each(w.exec, [=](int l) { d[l] = a[l] << 16; });
}

// The source may lie in a register wider than its type: `cvt.s64.s32 %rd1, %rd2`.
template <class To, class From> void choose(Instruction& i, bool saturate) {
  if (i.count == 64 && sizeof(From) < 8)
    i.run = convert<To, From, false, uint64_t>;
  else
    i.run = saturate ? convert<To, From, true> : convert<To, From, false>;
}
template <class To> bool from(Instruction& i, Type type, bool saturate) {
  switch (type) {
    case Type::kU8: choose<To, uint8_t>(i, saturate); return true;
    case Type::kS8: choose<To, int8_t>(i, saturate); return true;
    case Type::kU16: choose<To, uint16_t>(i, saturate); return true;
    case Type::kS16: choose<To, int16_t>(i, saturate); return true;
    case Type::kU32: choose<To, uint32_t>(i, saturate); return true;
    case Type::kS32: choose<To, int32_t>(i, saturate); return true;
    case Type::kU64: choose<To, uint64_t>(i, saturate); return true;
    case Type::kS64: choose<To, int64_t>(i, saturate); return true;
    case Type::kF32: choose<To, float>(i, saturate); return true;
    case Type::kF64: choose<To, double>(i, saturate); return true;
    default: return false;
  }
}
bool is_float(Type type) { return type == Type::kF32 || type == Type::kF64; }

}  // namespace

bool decode_convert(Decoding& d, Instruction& i) {
  if (!d.is("cvt")) return false;
  if (d.parts.back() == "f32" && d.has("bf16x2")) {
    if (!d.has("rn") || d.has("relu")) return false;
    i.run = two_bf16, i.d = d.place(0, 32), i.a = d.place(1, 32), i.b = d.place(2, 32);
    return true;
  }
  if (d.has("bf16")) {
    const bool narrows = d.parts.back() == "f32";
    if (!narrows && !(d.parts.back() == "bf16" && d.has("f32"))) return false;
    if (narrows && !d.has("rn")) return false;
    i.run = narrows ? one_bf16 : from_bf16;
    i.d = d.place(0, narrows ? 16 : 32), i.a = d.place(1, narrows ? 32 : 16);
    return true;
  }
  const Type source = d.type(), to = type_named(d.parts[d.parts.size() - 2]);
  const bool saturate = d.has("sat");
  if (saturate && !is_float(to)) return false;
  i.number = d.has("rni")   ? kNearest
             : d.has("rzi") ? kToZero
             : d.has("rmi") ? kDown
             : d.has("rpi") ? kUp
                            : kAsIs;
  // Only to nearest where digits are lost.
  if (d.has("rz") || d.has("rm") || d.has("rp")) return false;
  const int source_width = d.width(1) == 64 ? 64 : bits_of(source);
  if (source_width == 64 && is_float(source) && bits_of(source) == 32) return false;
  bool known = false;
  i.count = uint32_t(source_width);
  switch (to) {
    case Type::kU8: known = from<uint8_t>(i, source, saturate); break;
    case Type::kS8: known = from<int8_t>(i, source, saturate); break;
    case Type::kU16: known = from<uint16_t>(i, source, saturate); break;
    case Type::kS16: known = from<int16_t>(i, source, saturate); break;
    case Type::kU32: known = from<uint32_t>(i, source, saturate); break;
    case Type::kS32: known = from<int32_t>(i, source, saturate); break;
    case Type::kU64: known = from<uint64_t>(i, source, saturate); break;
    case Type::kS64: known = from<int64_t>(i, source, saturate); break;
    case Type::kF32: known = from<float>(i, source, saturate); break;
    case Type::kF64: known = from<double>(i, source, saturate); break;
    default: break;
  }
  if (!known) return false;
  i.d = d.place(0, bits_of(to)), i.a = d.place(1, source_width);
  return true;
}

}  // namespace lrnn::emulator
