#include "tests/emulator/ptx/decode.h"

// Whole numbers: arithmetic, bits, comparisons, selection.
namespace lrnn::emulator {
namespace {

template <class T>
using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
template <class T> using Unsigned = std::make_unsigned_t<T>;

struct Add {
  template <class T> static T of(T a, T b) { return T(Unsigned<T>(a) + Unsigned<T>(b)); }
};
struct Sub {
  template <class T> static T of(T a, T b) { return T(Unsigned<T>(a) - Unsigned<T>(b)); }
};
struct MulLow {
  template <class T> static T of(T a, T b) { return T(uint64_t(a) * uint64_t(b)); }
};
struct MulHigh {
  template <class T> static T of(T a, T b) { return T(Wide<T>(a) * Wide<T>(b) >> (8 * sizeof(T))); }
};
// What the hardware gives for a division by zero is all ones.
struct Div {
  template <class T> static T of(T a, T b) {
    if (b == 0) return T(-1);
    if (std::is_signed_v<T> && b == T(-1)) return Sub::of(T(0), a);
    return T(a / b);
  }
};
struct Rem {
  template <class T> static T of(T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == T(-1)) return 0;
    return T(a % b);
  }
};
struct Min {
  template <class T> static T of(T a, T b) { return a < b ? a : b; }
};
struct Max {
  template <class T> static T of(T a, T b) { return a < b ? b : a; }
};
struct And {
  template <class T> static T of(T a, T b) { return a & b; }
};
struct Or {
  template <class T> static T of(T a, T b) { return a | b; }
};
struct Xor {
  template <class T> static T of(T a, T b) { return a ^ b; }
};
struct Not {
  template <class T> static T of(T a) { return T(~a); }
};
struct LogicalNot {
  template <class T> static T of(T a) { return a == 0; }
};
struct Neg {
  template <class T> static T of(T a) { return Sub::of(T(0), a); }
};
struct Abs {
  template <class T> static T of(T a) { return a < 0 ? Sub::of(T(0), a) : a; }
};
struct CountOnes {
  template <class T> static T of(T a) { return T(std::popcount(Unsigned<T>(a))); }
};
struct LeadingZeros {
  template <class T> static T of(T a) { return T(std::countl_zero(Unsigned<T>(a))); }
};
struct Reverse {
  template <class T> static T of(T a) {
    T r = 0;
    for (size_t k = 0; k < 8 * sizeof(T); ++k) r |= T((a >> k & 1) << (8 * sizeof(T) - 1 - k));
    return r;
  }
};

template <class Op, class T> void unary(Warp& w, const Instruction& i) {
  auto* const d = w.at<Cell<T>>(i.d);
  const auto* const a = w.at<Cell<T>>(i.a);
  each(w.exec, [=](int l) { d[l] = put<T>(Op::of(get<T>(a[l]))); });
}
template <class Op, class T> void binary(Warp& w, const Instruction& i) {
  auto* const d = w.at<Cell<T>>(i.d);
  const auto *const a = w.at<Cell<T>>(i.a), *const b = w.at<Cell<T>>(i.b);
  each(w.exec, [=](int l) { d[l] = put<T>(Op::of(get<T>(a[l]), get<T>(b[l]))); });
}
template <class Op, class T> void and_add(Warp& w, const Instruction& i) {  // a op b + c
  auto* const d = w.at<Cell<T>>(i.d);
  const auto *const a = w.at<Cell<T>>(i.a), *const b = w.at<Cell<T>>(i.b),
                    *const c = w.at<Cell<T>>(i.c);
  each(w.exec,
       [=](int l) { d[l] = put<T>(Add::of(Op::of(get<T>(a[l]), get<T>(b[l])), get<T>(c[l]))); });
}
template <class T> void wide_product(Warp& w, const Instruction& i) {
  using Twice =
      std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
                         std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
  auto* const d = w.at<Twice>(i.d);
  const auto *const a = w.at<Cell<T>>(i.a), *const b = w.at<Cell<T>>(i.b);
  const auto* const c = i.count ? w.at<Twice>(i.c) : nullptr;
  each(w.exec, [=](int l) {
    const Twice product = Twice(get<T>(a[l])) * Twice(get<T>(b[l]));
    d[l] = c ? Add::of(product, c[l]) : product;
  });
}
// The shift is a number of 32 bits, and one beyond the width leaves nothing.
template <class T, bool kLeft> void shift(Warp& w, const Instruction& i) {
  auto* const d = w.at<Cell<T>>(i.d);
  const auto* const a = w.at<Cell<T>>(i.a);
  const auto* const b = w.at(i.b);
  constexpr uint32_t kBits = 8 * sizeof(T);
  each(w.exec, [=](int l) {
    const T x = get<T>(a[l]);
    const uint32_t by = b[l];
    T y;
    if constexpr (kLeft)
      y = by >= kBits ? T(0) : T(Unsigned<T>(x) << by);
    else
      y = T(x >> (by >= kBits ? (std::is_signed_v<T> ? kBits - 1 : 0) : by));
    if (!kLeft && !std::is_signed_v<T> && by >= kBits) y = 0;
    d[l] = put<T>(y);
  });
}
// Two words as one number, shifted; of a shift beyond 32 the remainder (wrap) or 32 (clamp).
template <bool kLeft, bool kWrap> void funnel(Warp& w, const Instruction& i) {
  auto* const d = w.at(i.d);
  const auto *const low = w.at(i.a), *const high = w.at(i.b),
                    *const by = w.at(w.function->lists[i.list]);
  each(w.exec, [=](int l) {
    const uint32_t n = kWrap ? by[l] & 31 : std::min(by[l], 32u);
    const uint64_t both = uint64_t(high[l]) << 32 | low[l];
    d[l] = kLeft ? uint32_t(both << n >> 32) : uint32_t(both >> n);
  });
}
template <class T> void insert_bits(Warp& w, const Instruction& i) {  // bfi d, a, into, at, length
  auto* const d = w.at<T>(i.d);
  const auto *const a = w.at<T>(i.a), *const into = w.at<T>(i.b);
  const auto *const at = w.at(i.c), *const length = w.at(w.function->lists[i.list]);
  each(w.exec, [=](int l) {
    const uint32_t from = at[l] & 255, n = length[l] & 255;
    T mask = n >= 8 * sizeof(T) ? T(-1) : T((T(1) << n) - 1);
    mask = from >= 8 * sizeof(T) ? T(0) : T(mask << from);
    const T moved = from >= 8 * sizeof(T) ? T(0) : T(a[l] << from);
    d[l] = (into[l] & ~mask) | (moved & mask);
  });
}
template <class T> void take_bits(Warp& w, const Instruction& i) {  // bfe d, a, at, length
  using U = Unsigned<T>;
  auto* const d = w.at<T>(i.d);
  const auto* const a = w.at<T>(i.a);
  const auto *const at = w.at(i.b), *const length = w.at(i.c);
  each(w.exec, [=](int l) {
    constexpr uint32_t kBits = 8 * sizeof(T);
    const uint32_t from = at[l] & 255, n = length[l] & 255;
    U out = 0;
    for (uint32_t k = 0; k < kBits; ++k) {
      const uint32_t last = std::min(from + n - 1, kBits - 1);
      const bool sign = std::is_signed_v<T> && n > 0 && (U(a[l]) >> last & 1);
      const bool bit = k < n && from + k < kBits ? U(a[l]) >> (from + k) & 1 : sign;
      out |= U(bit) << k;
    }
    d[l] = T(out);
  });
}
// The place of the highest bit that differs from the sign; with kShift: how far it is from the top.
template <class T, bool kShift> void find_bit(Warp& w, const Instruction& i) {
  auto* const d = w.at(i.d);
  const auto* const a = w.at<T>(i.a);
  each(w.exec, [=](int l) {
    const Unsigned<T> x = a[l] < 0 ? Unsigned<T>(~a[l]) : Unsigned<T>(a[l]);
    const int zeros = std::countl_zero(x);
    d[l] = x == 0 ? kAll : uint32_t(kShift ? zeros : int(8 * sizeof(T)) - 1 - zeros);
  });
}
void pick_bytes(Warp& w, const Instruction& i) {  // prmt
  auto* const d = w.at(i.d);
  const auto *const a = w.at(i.a), *const b = w.at(i.b), *const c = w.at(i.c);
  each(w.exec, [=](int l) {
    const uint64_t both = uint64_t(b[l]) << 32 | a[l];
    uint32_t out = 0;
    for (int k = 0; k < 4; ++k) {
      const uint32_t how = c[l] >> (4 * k) & 15;
      uint32_t byte = uint32_t(both >> (8 * (how & 7))) & 255;
      if (how & 8) byte = byte & 128 ? 255 : 0;
      out |= byte << (8 * k);
    }
    d[l] = out;
  });
}
void three_inputs(Warp& w, const Instruction& i) {  // lop3
  auto* const d = w.at(i.d);
  const auto *const a = w.at(i.a), *const b = w.at(i.b), *const c = w.at(i.c);
  const auto table = uint32_t(i.number);
  each(w.exec, [=](int l) {
    uint32_t out = 0;
    for (uint32_t k = 0; k < 8; ++k)
      if (table >> k & 1)
        out |= (k & 4 ? a[l] : ~a[l]) & (k & 2 ? b[l] : ~b[l]) & (k & 1 ? c[l] : ~c[l]);
    d[l] = out;
  });
}

template <class Op> void predicates(Warp& w, const Instruction& i) {
  const uint32_t value = Op::of(w.predicate(i.a), w.predicate(i.b));
  w.predicate(i.d) = (w.predicate(i.d) & ~w.exec) | (value & w.exec);
}
void not_predicate(Warp& w, const Instruction& i) {
  w.predicate(i.d) = (w.predicate(i.d) & ~w.exec) | (~w.predicate(i.a) & w.exec);
}
template <class T> void select(Warp& w, const Instruction& i) {
  auto* const d = w.at<T>(i.d);
  const auto *const a = w.at<T>(i.a), *const b = w.at<T>(i.b);
  const uint32_t chosen = w.predicate(i.c);
  each(w.exec, [=](int l) { d[l] = chosen >> l & 1 ? a[l] : b[l]; });
}

// f.template operator()<T>() for a type of whole numbers.
template <class F> bool with_integer(Type type, F&& f) {
  switch (type) {
    case Type::kU16:
    case Type::kB16: f.template operator()<uint16_t>(); return true;
    case Type::kS16: f.template operator()<int16_t>(); return true;
    case Type::kU32:
    case Type::kB32: f.template operator()<uint32_t>(); return true;
    case Type::kS32: f.template operator()<int32_t>(); return true;
    case Type::kU64:
    case Type::kB64: f.template operator()<uint64_t>(); return true;
    case Type::kS64: f.template operator()<int64_t>(); return true;
    default: return false;
  }
}

template <class Op> bool two(Decoding& d, Instruction& i) {
  const int width = bits_of(d.type());
  return with_integer(d.type(), [&]<class T>() {
    i.run = binary<Op, T>;
    i.d = d.place(0, width), i.a = d.place(1, width), i.b = d.place(2, width);
  });
}
template <class Op> bool one(Decoding& d, Instruction& i) {
  const int width = bits_of(d.type());
  return with_integer(d.type(), [&]<class T>() {
    i.run = unary<Op, T>;
    i.d = d.place(0, width), i.a = d.place(1, width);
  });
}
template <class Op> bool logic(Decoding& d, Instruction& i) {
  if (d.type() != Type::kPred) return two<Op>(d, i);
  i.run = predicates<Op>;
  i.d = d.place(0, 1), i.a = d.place(1, 1), i.b = d.place(2, 1);
  return true;
}

bool product(Decoding& d, Instruction& i, bool adds) {
  const int width = bits_of(d.type());
  return with_integer(d.type(), [&]<class T>() {
    const bool wide = d.has("wide"), high = d.has("hi");
    i.a = d.place(1, width), i.b = d.place(2, width);
    i.d = d.place(0, wide ? 2 * width : width);
    if (adds) i.c = d.place(3, wide ? 2 * width : width), i.count = 1;
    if constexpr (sizeof(T) < 8)
      if (wide) i.run = wide_product<T>;
    if (!wide && adds) i.run = high ? and_add<MulHigh, T> : and_add<MulLow, T>;
    if (!wide && !adds) i.run = high ? binary<MulHigh, T> : binary<MulLow, T>;
  });
}

}  // namespace

bool decode_arithmetic(Decoding& d, Instruction& i) {
  const Type type = d.type();
  if (type == Type::kF32 || type == Type::kF64) {
    if (!d.is("selp")) return false;
  }
  const int width = bits_of(type);
  if (d.is("add")) return !d.has("cc") && two<Add>(d, i);
  if (d.is("sub")) return !d.has("cc") && two<Sub>(d, i);
  if (d.is("mul")) return product(d, i, false);
  if (d.is("mad")) return !d.has("cc") && product(d, i, true);
  if (d.is("div")) return two<Div>(d, i);
  if (d.is("rem")) return two<Rem>(d, i);
  if (d.is("min")) return two<Min>(d, i);
  if (d.is("max")) return two<Max>(d, i);
  if (d.is("neg")) return one<Neg>(d, i);
  if (d.is("abs")) return one<Abs>(d, i);
  if (d.is("brev")) return one<Reverse>(d, i);
  if (d.is("and")) return logic<And>(d, i);
  if (d.is("or")) return logic<Or>(d, i);
  if (d.is("xor")) return logic<Xor>(d, i);
  if (d.is("not")) {
    if (type != Type::kPred) return one<Not>(d, i);
    i.run = not_predicate, i.d = d.place(0, 1), i.a = d.place(1, 1);
    return true;
  }
  if (d.is("cnot")) return one<LogicalNot>(d, i);
  if (d.is("popc") || d.is("clz")) {
    if (width != 32) return false;
    return d.is("popc") ? one<CountOnes>(d, i) : one<LeadingZeros>(d, i);
  }
  if (d.is("shl") || d.is("shr")) {
    const bool left = d.is("shl");
    return with_integer(type, [&]<class T>() {
      i.run = left ? shift<T, true> : shift<T, false>;
      i.d = d.place(0, width), i.a = d.place(1, width), i.b = d.place(2, 32);
    });
  }
  if (d.is("shf")) {
    const bool left = d.has("l"), wrap = d.has("wrap");
    i.run = left ? (wrap ? funnel<true, true> : funnel<true, false>)
                 : (wrap ? funnel<false, true> : funnel<false, false>);
    i.d = d.place(0, 32), i.a = d.place(1, 32), i.b = d.place(2, 32);
    i.list = d.list({d.operand(3)}, 32);
    return true;
  }
  if (d.is("bfi")) {
    i.run = width == 64 ? insert_bits<uint64_t> : insert_bits<uint32_t>;
    i.d = d.place(0, width), i.a = d.place(1, width), i.b = d.place(2, width), i.c = d.place(3, 32);
    i.list = d.list({d.operand(4)}, 32);
    return true;
  }
  if (d.is("bfe"))
    return width >= 32 && with_integer(type, [&]<class T>() {
             if constexpr (sizeof(T) >= 4) i.run = take_bits<T>;
             i.d = d.place(0, width), i.a = d.place(1, width), i.b = d.place(2, 32),
             i.c = d.place(3, 32);
           });
  if (d.is("bfind"))
    return width >= 32 && with_integer(type, [&]<class T>() {
             if constexpr (sizeof(T) >= 4)
               i.run = d.has("shiftamt") ? find_bit<T, true> : find_bit<T, false>;
             i.d = d.place(0, 32), i.a = d.place(1, width);
           });
  if (d.is("prmt")) {
    if (d.parts.size() > 2) return false;
    i.run = pick_bytes;
    i.d = d.place(0, 32), i.a = d.place(1, 32), i.b = d.place(2, 32), i.c = d.place(3, 32);
    return true;
  }
  if (d.is("lop3")) {
    i.run = three_inputs, i.number = int64_t(d.number(4));
    i.d = d.place(0, 32), i.a = d.place(1, 32), i.b = d.place(2, 32), i.c = d.place(3, 32);
    return true;
  }
  if (d.is("selp")) {
    i.run = width == 64 ? select<uint64_t> : select<uint32_t>;
    i.d = d.place(0, width), i.a = d.place(1, width), i.b = d.place(2, width), i.c = d.place(3, 1);
    return true;
  }
  return false;
}

}  // namespace lrnn::emulator
