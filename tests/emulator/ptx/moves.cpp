#include "tests/emulator/ptx/decode.h"

// mov, and what turns one kind of address into another.
namespace lrnn::emulator {
namespace {

template <class T> void copy(Warp& w, const Instruction& i) {
  auto* const d = w.at<T>(i.d);
  const auto* const a = w.at<T>(i.a);
  each(w.exec, [=](int l) { d[l] = a[l]; });
}
void copy_predicate(Warp& w, const Instruction& i) {
  w.predicate(i.d) = (w.predicate(i.d) & ~w.exec) | (w.predicate(i.a) & w.exec);
}
// One register of several, and back: the first of the list has the low bits.
template <class Whole, int kBits> void join(Warp& w, const Instruction& i) {
  const uint32_t* const from = w.function->lists.data() + i.list;
  auto* const d = w.at<Whole>(i.d);
  each(w.exec, [&](int l) {
    Whole all = 0;
    for (uint32_t k = 0; k < i.count; ++k)
      all |= Whole(w.at(from[k])[l] & uint32_t((uint64_t(1) << kBits) - 1)) << (kBits * k);
    d[l] = all;
  });
}
template <class Whole, int kBits> void split(Warp& w, const Instruction& i) {
  const uint32_t* const to = w.function->lists.data() + i.list;
  const auto* const a = w.at<Whole>(i.a);
  each(w.exec, [&](int l) {
    const Whole all = a[l];
    for (uint32_t k = 0; k < i.count; ++k)
      if (to[k] != kNone)
        w.at(to[k])[l] = uint32_t(all >> (kBits * k)) & uint32_t((uint64_t(1) << kBits) - 1);
  });
}
void parameter_address(Warp& w, const Instruction& i) {
  auto* const d = w.at<uint64_t>(i.d);
  const auto address = reinterpret_cast<uint64_t>(w.block->parameters) + uint64_t(i.number);
  each(w.exec, [=](int l) { d[l] = address; });
}
void local_address(Warp& w, const Instruction& i) {
  auto* const d = w.at<uint64_t>(i.d);
  const auto first = reinterpret_cast<uint64_t>(w.local.data()) + uint64_t(i.number);
  const uint64_t each_lane = w.function->local;
  each(w.exec, [=](int l) { d[l] = first + each_lane * uint64_t(l); });
}
template <bool kToShared> void change_space(Warp& w, const Instruction& i) {
  auto* const d = w.at<uint64_t>(i.d);
  const auto* const a = w.at<uint64_t>(i.a);
  const auto base = reinterpret_cast<uint64_t>(w.block->shared);
  each(w.exec, [=](int l) { d[l] = kToShared ? a[l] - base : a[l] + base; });
}
void of_other_block(Warp& w,
                    const Instruction& i) {  // mapa: the same place in another block of the cluster
  auto* const d = w.at(i.d);
  const auto *const a = w.at(i.a), *const rank = w.at(i.b);
  each(w.exec,
       [=](int l) { d[l] = (a[l] & ((1u << kRankBits) - 1)) | (rank[l] + 1) << kRankBits; });
}
void clock(Warp& w, const Instruction& i) {  // statements are not counted: time stands still
  auto* const d = w.at<uint64_t>(i.d);
  each(w.exec, [=](int l) { d[l] = 0; });
}

bool decode_mov(Decoding& d, Instruction& i) {
  const Operand &to = d.operand(0), &from = d.operand(1);
  const int width = bits_of(d.type());
  if (from.kind == Operand::kList || to.kind == Operand::kList) {
    const bool joins = from.kind == Operand::kList;
    const auto& items = joins ? from.items : to.items;
    const int part = width / int(items.size());
    if (width == 32 && part == 16) {
      i.run = joins ? join<uint32_t, 16> : split<uint32_t, 16>;
    } else if (width == 64 && part == 16) {
      i.run = joins ? join<uint64_t, 16> : split<uint64_t, 16>;
    } else if (width == 64 && part == 32) {
      i.run = joins ? join<uint64_t, 32> : split<uint64_t, 32>;
    } else {
      return false;
    }
    i.list = d.list(items, part), i.count = uint32_t(items.size());
    (joins ? i.d : i.a) = d.place(joins ? 0 : 1, width);
    return true;
  }
  i.d = d.place(0, width);
  if (from.kind == Operand::kName) {
    if (const auto found = d.text.shared.find(from.name); found != d.text.shared.end()) {
      i.run = width == 64 ? copy<uint64_t> : copy<uint32_t>;
      i.a = d.constant(kSharedBegin + found->second.offset, width);
    } else if (const auto mine = d.text.local.find(from.name); mine != d.text.local.end()) {
      i.run = local_address, i.number = int64_t(mine->second.offset);
    } else if (const auto given = d.text.parameters.find(from.name);
               given != d.text.parameters.end()) {
      i.run = parameter_address, i.number = int64_t(given->second.offset);
    } else {
      d.stop("variable '" + std::string(from.name) + "' is not known");
    }
    return true;
  }
  if (from.name == "%clock64" || from.name == "%globaltimer") {
    i.run = clock;
    return true;
  }
  i.a = d.place(1, width);
  i.run = width == 1 ? copy_predicate : width == 64 ? copy<uint64_t> : copy<uint32_t>;
  return true;
}

}  // namespace

bool decode_move(Decoding& d, Instruction& i) {
  if (d.is("mov")) return decode_mov(d, i);
  if (d.is("cvta")) {
    i.d = d.place(0, 64);
    if (d.operand(1).kind == Operand::kName) return decode_mov(d, i);
    i.a = d.place(1, 64);
    const bool shared = d.has("shared"), to = d.has("to");
    i.run = !shared ? copy<uint64_t> : to ? change_space<true> : change_space<false>;
    return true;
  }
  if (d.is("mapa")) {
    if (d.type() != Type::kU32) return false;
    i.run = of_other_block;
    i.d = d.place(0, 32), i.a = d.place(1, 32), i.b = d.place(2, 32);
    return true;
  }
  return false;
}

}  // namespace lrnn::emulator
