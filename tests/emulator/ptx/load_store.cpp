#include "tests/emulator/ptx/decode.h"

// Moves between registers and memory. Memory of the device and local memory have addresses of the
// host; shared memory has its own, by block.
namespace lrnn::emulator {
namespace {

enum Space { kGeneric, kGlobal, kShared, kLocal, kParameter };

// Where lane l's address points.
template <Space kSpace, bool kWideAddress>
unsigned char* find(Warp& w, const Instruction& i, int l, size_t bytes, const char* what) {
  const uint64_t address =
      uint64_t(i.number) + (kWideAddress ? w.at<uint64_t>(i.a)[l] : w.at(i.a)[l]);
  w.exec = w.exec & ~((1u << l) - 1);  // so that a fault names the lane
  if constexpr (kSpace == kShared)
    return w.shared(address & (kWideAddress ? ~uint64_t(0) : kAll), bytes);
  if constexpr (kSpace == kParameter) {
    // An address of a parameter is one of the host once it was taken into a register.
    if (address + bytes <= w.function->parameters)
      return const_cast<unsigned char*>(w.block->parameters) + address;
  }
  return w.global(address, bytes, what);
}

template <Space kSpace>
void look_for_races(Warp& w, const unsigned char* at, size_t bytes, Races::How how) {
  w.races()->touch(w, at, bytes, how);  // generic addresses may be shared, too
  if (kSpace != kShared) w.races()->touch_global(w, reinterpret_cast<uint64_t>(at), bytes, how);
}

template <class T, class Register, Space kSpace, bool kWideAddress>
void load(Warp& w, const Instruction& i) {
  const uint32_t lanes = w.exec, *const to = w.function->lists.data() + i.list;
  Races* const races = w.races();
  each(lanes, [&](int l) {
    const unsigned char* const from =
        find<kSpace, kWideAddress>(w, i, l, sizeof(T) * i.count, "a load");
    if (races) look_for_races<kSpace>(w, from, sizeof(T) * i.count, Races::kRead);
    for (uint32_t k = 0; k < i.count; ++k) {
      T x;
      std::memcpy(&x, from + k * sizeof(T), sizeof x);
      if (to[k] != kNone)
        w.at<Register>(to[k])[l] = Register(
            std::conditional_t<std::is_signed_v<T>, std::make_signed_t<Register>, Register>(x));
    }
  });
  w.exec = lanes;
}
template <class T, class Register, Space kSpace, bool kWideAddress>
void store(Warp& w, const Instruction& i) {
  const uint32_t lanes = w.exec, *const from = w.function->lists.data() + i.list;
  Races* const races = w.races();
  each(lanes, [&](int l) {
    unsigned char* const to = find<kSpace, kWideAddress>(w, i, l, sizeof(T) * i.count, "a store");
    if (races) look_for_races<kSpace>(w, to, sizeof(T) * i.count, Races::kWrite);
    for (uint32_t k = 0; k < i.count; ++k) {
      const T x = T(w.at<Register>(from[k])[l]);
      std::memcpy(to + k * sizeof(T), &x, sizeof x);
    }
  });
  w.exec = lanes;
  ++w.block->events;
}

template <class T, class Register, bool kLoads, Space kSpace>
Instruction::Run chosen(bool wide_address) {
  if constexpr (kLoads)
    return wide_address ? load<T, Register, kSpace, true> : load<T, Register, kSpace, false>;
  else
    return wide_address ? store<T, Register, kSpace, true> : store<T, Register, kSpace, false>;
}
template <class T, class Register, bool kLoads>
Instruction::Run chosen(Space space, bool wide_address) {
  switch (space) {
    case kShared: return chosen<T, Register, kLoads, kShared>(wide_address);
    case kParameter: return chosen<T, Register, kLoads, kParameter>(wide_address);
    default: return chosen<T, Register, kLoads, kGlobal>(wide_address);
  }
}
template <class Register, bool kLoads>
Instruction::Run chosen(Type type, Space space, bool wide_address) {
  switch (type) {
    case Type::kB8:
    case Type::kU8: return chosen<uint8_t, Register, kLoads>(space, wide_address);
    case Type::kS8: return chosen<int8_t, Register, kLoads>(space, wide_address);
    case Type::kB16:
    case Type::kU16: return chosen<uint16_t, Register, kLoads>(space, wide_address);
    case Type::kS16: return chosen<int16_t, Register, kLoads>(space, wide_address);
    case Type::kS32: return chosen<int32_t, Register, kLoads>(space, wide_address);
    case Type::kB32:
    case Type::kU32:
    case Type::kF32: return chosen<uint32_t, Register, kLoads>(space, wide_address);
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
    case Type::kF64:
      if constexpr (sizeof(Register) == 8)
        return chosen<uint64_t, Register, kLoads>(space, wide_address);
      return nullptr;
    default: return nullptr;
  }
}

// `ld` and `st`. How memory keeps order between threads needs no thought here: warps take turns.
bool load_or_store(Decoding& d, Instruction& i, bool loads) {
  const Operand &address = d.operand(loads ? 1 : 0), &values = d.operand(loads ? 0 : 1);
  const Type type = d.type();
  const auto& items = values.kind == Operand::kList ? values.items : std::vector<Operand>{values};
  const Space space = d.has("shared") || d.has("shared::cta") || d.has("shared::cluster") ? kShared
                      : d.has("param") ? kParameter
                                       : kGlobal;
  const bool wide_address = d.address(address, i.a, i.number);
  int width = bits_of(type) == 64 ? 64 : 32;
  for (const Operand& item : items)
    if (d.width(item) == 64) width = 64;
  i.run = loads ? (width == 64 ? chosen<uint64_t, true>(type, space, wide_address)
                               : chosen<uint32_t, true>(type, space, wide_address))
                : (width == 64 ? chosen<uint64_t, false>(type, space, wide_address)
                               : chosen<uint32_t, false>(type, space, wide_address));
  if (!i.run) return false;
  i.list = d.list(items, width), i.count = uint32_t(items.size());
  return true;
}

// ---------------------------------------------------------------------------------------- atomics
template <class T> T updated(T old, T x, int how) {
  switch (how) {
    case 0: return T(old + x);
    case 1: return old < x ? old : x;
    case 2: return old < x ? x : old;
    case 3: return x;
  }
  if constexpr (!std::is_floating_point_v<T>) {
    if (how == 4) return old & x;
    if (how == 5) return old | x;
    if (how == 6) return old ^ x;
  }
  return x;
}
// Blocks run beside each other, so these are atomic on the host, too.
template <class T, Space kSpace, bool kWideAddress> void atomic(Warp& w, const Instruction& i) {
  const uint32_t lanes = w.exec;
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    auto* const at =
        reinterpret_cast<T*>(find<kSpace, kWideAddress>(w, i, l, sizeof(T), "an atomic"));
    if (w.races())
      look_for_races<kSpace>(w, reinterpret_cast<unsigned char*>(at), sizeof(T), Races::kAtomic);
    const T x = w.at<T>(i.b)[l];
    T old;
    __atomic_load(at, &old, __ATOMIC_SEQ_CST);
    for (;;) {
      T next = i.count == 7 ? (old == x ? w.at<T>(i.c)[l] : old) : updated(old, x, int(i.count));
      if (__atomic_compare_exchange(at, &old, &next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        break;
    }
    if (i.d != kNone) w.at<T>(i.d)[l] = old;
  }
  w.exec = lanes;
  ++w.block->events;
}
template <class T> bool atomic_of(Decoding& d, Instruction& i) {
  static constexpr std::string_view kNames[] = {"add", "min", "max", "exch",
                                                "and", "or",  "xor", "cas"};
  const auto* const name =
      std::find_if(std::begin(kNames), std::end(kNames), [&](auto n) { return d.has(n); });
  if (name == std::end(kNames)) return false;
  i.count = uint32_t(name - kNames);
  const bool gives = d.is("atom");
  const size_t first = gives ? 1 : 0;
  i.d = gives && d.operand(0).kind != Operand::kSink ? d.place(0, 8 * sizeof(T)) : kNone;
  const bool wide = d.address(d.operand(first), i.a, i.number);
  i.b = d.place(first + 1, 8 * sizeof(T));
  if (i.count == 7) i.c = d.place(first + 2, 8 * sizeof(T));
  if (d.has("shared") || d.has("shared::cta"))
    i.run = wide ? atomic<T, kShared, true> : atomic<T, kShared, false>;
  else
    i.run = atomic<T, kGlobal, true>;
  return true;
}

}  // namespace

bool decode_load_store(Decoding& d, Instruction& i) {
  if (d.is("ld") || d.is("st")) return load_or_store(d, i, d.is("ld"));
  if (d.is("atom") || d.is("red")) {
    switch (d.type()) {
      case Type::kB32:
      case Type::kU32: return atomic_of<uint32_t>(d, i);
      case Type::kS32: return atomic_of<int32_t>(d, i);
      case Type::kB64:
      case Type::kU64: return atomic_of<uint64_t>(d, i);
      case Type::kS64: return atomic_of<int64_t>(d, i);
      case Type::kF32: return atomic_of<float>(d, i);
      case Type::kF64: return atomic_of<double>(d, i);
      default: return false;
    }
  }
  return false;
}

}  // namespace lrnn::emulator
