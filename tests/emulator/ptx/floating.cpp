#include <cfenv>
#include <cmath>
#include <limits>

#include "tests/emulator/ptx/decode.h"

// Floating point, and comparisons of every type. What the hardware approximates is exact here.
namespace lrnn::emulator {
namespace {

struct Add {
  template <class T> static T of(T a, T b) { return a + b; }
};
struct Sub {
  template <class T> static T of(T a, T b) { return a - b; }
};
struct Mul {
  template <class T> static T of(T a, T b) { return a * b; }
};
struct Div {
  template <class T> static T of(T a, T b) { return a / b; }
};
// Of a number and NaN, the number.
struct Min {
  template <class T> static T of(T a, T b) {
    return b != b || a < b ? a : a != a || b < a ? b : std::signbit(a) ? a : b;
  }
};
struct Max {
  template <class T> static T of(T a, T b) {
    return b != b || a > b ? a : a != a || b > a ? b : std::signbit(a) ? b : a;
  }
};
template <class T> T canonical() {  // the NaN that the hardware makes
  if constexpr (sizeof(T) == 4) return std::bit_cast<float>(0x7fffffffu);
  return std::numeric_limits<T>::quiet_NaN();
}
struct MinOrNan {
  template <class T> static T of(T a, T b) {
    return a != a || b != b ? canonical<T>() : Min::of(a, b);
  }
};
struct MaxOrNan {
  template <class T> static T of(T a, T b) {
    return a != a || b != b ? canonical<T>() : Max::of(a, b);
  }
};
struct CopySign {
  template <class T> static T of(T a, T b) { return std::copysign(b, a); }
};
struct Neg {
  template <class T> static T of(T a) { return -a; }
};
struct Abs {
  template <class T> static T of(T a) { return std::abs(a); }
};
struct Sqrt {
  template <class T> static T of(T a) { return std::sqrt(a); }
};
struct Rsqrt {
  template <class T> static T of(T a) { return T(1) / std::sqrt(a); }
};
struct Rcp {
  template <class T> static T of(T a) { return T(1) / a; }
};
struct Exp2 {
  template <class T> static T of(T a) { return std::exp2(a); }
};
struct Log2 {
  template <class T> static T of(T a) { return std::log2(a); }
};
struct Sin {
  template <class T> static T of(T a) { return std::sin(a); }
};
struct Cos {
  template <class T> static T of(T a) { return std::cos(a); }
};
struct Tanh {
  template <class T> static T of(T a) { return std::tanh(a); }
};
// In double precision these give the upper half of the result: code that divides goes on from it.
double upper_half(double x) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(x) & 0xffffffff00000000u);
}
struct RcpHalf {
  template <class T> static T of(T a) { return T(upper_half(1 / double(a))); }
};
struct RsqrtHalf {
  template <class T> static T of(T a) { return T(upper_half(1 / std::sqrt(double(a)))); }
};

template <class Op, class T> void unary(Warp& w, const Instruction& i) {
  auto* const d = w.at<T>(i.d);
  const auto* const a = w.at<T>(i.a);
  each(w.exec, [=](int l) { d[l] = Op::of(a[l]); });
}
template <class Op, class T> void binary(Warp& w, const Instruction& i) {
  auto* const d = w.at<T>(i.d);
  const auto *const a = w.at<T>(i.a), *const b = w.at<T>(i.b);
  each(w.exec, [=](int l) { d[l] = Op::of(a[l], b[l]); });
}
template <class T> void fused(Warp& w, const Instruction& i) {
  auto* const d = w.at<T>(i.d);
  const auto *const a = w.at<T>(i.a), *const b = w.at<T>(i.b), *const c = w.at<T>(i.c);
  each(w.exec, [=](int l) { d[l] = std::fma(a[l], b[l], c[l]); });
}
// Rounded as the processor is told to; `volatile` keeps the compiler from working it out before.
template <class T, int kRounding> void fused_rounded(Warp& w, const Instruction& i) {
  auto* const d = w.at<T>(i.d);
  const auto *const a = w.at<T>(i.a), *const b = w.at<T>(i.b), *const c = w.at<T>(i.c);
  std::fesetround(kRounding);
  for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    volatile T x = a[l], y = b[l], z = c[l];
    volatile T r = std::fma(x, y, z);
    d[l] = r;
  }
  std::fesetround(FE_TONEAREST);
}
template <class T> void saturated_add(Warp& w, const Instruction& i) {
  auto* const d = w.at<T>(i.d);
  const auto *const a = w.at<T>(i.a), *const b = w.at<T>(i.b);
  each(w.exec, [=](int l) {
    const T sum = a[l] + b[l];
    d[l] = sum > 0 ? std::min(sum, T(1)) : T(0);  // NaN becomes 0
  });
}

template <class F> bool with_float(Type type, F&& f) {
  if (type == Type::kF32) return f.template operator()<float>(), true;
  if (type == Type::kF64) return f.template operator()<double>(), true;
  return false;
}
template <class Op> bool one(Decoding& d, Instruction& i) {
  return with_float(d.type(), [&]<class T>() {
    i.run = unary<Op, T>;
    i.d = d.place(0, 8 * sizeof(T)), i.a = d.place(1, 8 * sizeof(T));
  });
}
template <class Op> bool two(Decoding& d, Instruction& i) {
  return with_float(d.type(), [&]<class T>() {
    i.run = binary<Op, T>;
    i.d = d.place(0, 8 * sizeof(T)), i.a = d.place(1, 8 * sizeof(T)),
    i.b = d.place(2, 8 * sizeof(T));
  });
}
bool three(Decoding& d, Instruction& i) {
  return with_float(d.type(), [&]<class T>() {
    i.run = d.has("rm")   ? fused_rounded<T, FE_DOWNWARD>
            : d.has("rp") ? fused_rounded<T, FE_UPWARD>
            : d.has("rz") ? fused_rounded<T, FE_TOWARDZERO>
                          : fused<T>;
    i.d = d.place(0, 8 * sizeof(T)), i.a = d.place(1, 8 * sizeof(T));
    i.b = d.place(2, 8 * sizeof(T)), i.c = d.place(3, 8 * sizeof(T));
  });
}

// ---------------------------------------------------------------------------------- comparisons
struct Less {
  template <class T> static bool of(T a, T b) { return a < b; }
};
struct LessEqual {
  template <class T> static bool of(T a, T b) { return a <= b; }
};
struct Greater {
  template <class T> static bool of(T a, T b) { return a > b; }
};
struct GreaterEqual {
  template <class T> static bool of(T a, T b) { return a >= b; }
};
struct Equal {
  template <class T> static bool of(T a, T b) { return a == b; }
};
struct NotEqual {
  template <class T> static bool of(T a, T b) { return a < b || a > b; }
};  // NaN: false
struct Ordered {
  template <class T> static bool of(T a, T b) { return a == a && b == b; }
};
template <class Op> struct OrUnordered {
  template <class T> static bool of(T a, T b) { return Op::of(a, b) || a != a || b != b; }
};
struct Unordered {
  template <class T> static bool of(T a, T b) { return a != a || b != b; }
};

template <class Op, class T> void compare(Warp& w, const Instruction& i) {
  const auto *const a = w.at<Cell<T>>(i.a), *const b = w.at<Cell<T>>(i.b);
  uint32_t holds = 0;
  for (int l = 0; l < kLanes; ++l) holds |= uint32_t(Op::of(get<T>(a[l]), get<T>(b[l]))) << l;
  uint32_t first = holds, second = ~holds;
  if (i.count) {  // and, or, xor with another predicate
    const uint32_t other = w.predicate(i.c) ^ uint32_t(i.number >> 8);
    const auto with = [&](uint32_t x) {
      return i.count == 1 ? x & other : i.count == 2 ? x | other : x ^ other;
    };
    first = with(first), second = with(second);
  }
  if (i.d != kNone) w.predicate(i.d) = (w.predicate(i.d) & ~w.exec) | (first & w.exec);
  if (i.list != kNone) w.predicate(i.list) = (w.predicate(i.list) & ~w.exec) | (second & w.exec);
}

template <class T> Instruction::Run comparison(std::string_view how) {
  if (how == "eq") return compare<Equal, T>;
  if (how == "ne") return compare<NotEqual, T>;
  if (how == "lt" || how == "lo") return compare<Less, T>;
  if (how == "le" || how == "ls") return compare<LessEqual, T>;
  if (how == "gt" || how == "hi") return compare<Greater, T>;
  if (how == "ge" || how == "hs") return compare<GreaterEqual, T>;
  if constexpr (std::is_floating_point_v<T>) {
    if (how == "equ") return compare<OrUnordered<Equal>, T>;
    if (how == "neu") return compare<OrUnordered<NotEqual>, T>;
    if (how == "ltu") return compare<OrUnordered<Less>, T>;
    if (how == "leu") return compare<OrUnordered<LessEqual>, T>;
    if (how == "gtu") return compare<OrUnordered<Greater>, T>;
    if (how == "geu") return compare<OrUnordered<GreaterEqual>, T>;
    if (how == "num") return compare<Ordered, T>;
    if (how == "nan") return compare<Unordered, T>;
  }
  return nullptr;
}

bool decode_setp(Decoding& d, Instruction& i) {
  const Type type = d.type();
  const int width = bits_of(type);
  const std::string_view how = d.parts[1];
  switch (type) {
    case Type::kB16:
    case Type::kU16: i.run = comparison<uint16_t>(how); break;
    case Type::kS16: i.run = comparison<int16_t>(how); break;
    case Type::kB32:
    case Type::kU32: i.run = comparison<uint32_t>(how); break;
    case Type::kS32: i.run = comparison<int32_t>(how); break;
    case Type::kB64:
    case Type::kU64: i.run = comparison<uint64_t>(how); break;
    case Type::kS64: i.run = comparison<int64_t>(how); break;
    case Type::kF32: i.run = comparison<float>(how); break;
    case Type::kF64: i.run = comparison<double>(how); break;
    default: return false;
  }
  if (!i.run) return false;
  const Operand& to = d.operand(0);
  i.d = to.kind == Operand::kSink ? kNone : d.place(0, 1);
  i.list = kNone;
  if (to.second >= 0) {
    Operand second;
    second.kind = Operand::kRegister, second.reg = to.second;
    i.list = d.place(second, 1);
  }
  i.a = d.place(1, width), i.b = d.place(2, width);
  i.count = d.has("and") ? 1 : d.has("or") ? 2 : d.has("xor") ? 3 : 0;
  if (i.count) {
    Operand other = d.operand(3);
    if (other.negated) i.number = int64_t(kAll) << 8;
    other.negated = false;
    i.c = d.place(other, 1);
  }
  return true;
}

}  // namespace

bool decode_float(Decoding& d, Instruction& i) {
  if (d.is("setp")) return decode_setp(d, i);
  const Type type = d.type();
  if (type != Type::kF32 && type != Type::kF64) return false;
  // Directed rounding is known of fma alone.
  if (!d.is("fma") && !d.is("cvt") && (d.has("rm") || d.has("rp") || d.has("rz"))) return false;
  if (d.is("add")) {
    if (!d.has("sat")) return two<Add>(d, i);
    return with_float(type, [&]<class T>() {
      two<Add>(d, i);
      i.run = saturated_add<T>;
    });
  }
  if ((d.has("sat") && !d.is("cvt")) || d.has("xorsign")) return false;
  if (d.is("sub")) return two<Sub>(d, i);
  if (d.is("mul")) return two<Mul>(d, i);
  if (d.is("div")) return two<Div>(d, i);
  const bool nan = d.has("NaN");
  if (d.is("min")) return nan ? two<MinOrNan>(d, i) : two<Min>(d, i);
  if (d.is("max")) return nan ? two<MaxOrNan>(d, i) : two<Max>(d, i);
  if (d.is("copysign")) return two<CopySign>(d, i);
  if (d.is("fma") || d.is("mad")) return three(d, i);
  if (d.is("neg")) return one<Neg>(d, i);
  if (d.is("abs")) return one<Abs>(d, i);
  if (d.is("sqrt")) return one<Sqrt>(d, i);
  const bool half = type == Type::kF64 && d.has("approx") && d.has("ftz");
  if (d.is("rsqrt")) return half ? one<RsqrtHalf>(d, i) : one<Rsqrt>(d, i);
  if (d.is("rcp")) return half ? one<RcpHalf>(d, i) : one<Rcp>(d, i);
  if (d.is("ex2")) return one<Exp2>(d, i);
  if (d.is("lg2")) return one<Log2>(d, i);
  if (d.is("sin")) return one<Sin>(d, i);
  if (d.is("cos")) return one<Cos>(d, i);
  if (d.is("tanh")) return one<Tanh>(d, i);
  return false;
}

}  // namespace lrnn::emulator
