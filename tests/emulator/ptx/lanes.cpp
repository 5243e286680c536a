#include "tests/emulator/ptx/decode.h"

// What lanes of a warp do together: exchange values, vote.
namespace lrnn::emulator {
namespace {

enum Shuffle { kUp, kDown, kButterfly, kIndex };

template <Shuffle kHow> void shuffle(Warp& w, const Instruction& i) {
  const uint32_t* const more = w.function->lists.data() + i.list;
  const auto* const masks = w.at(more[0]);
  if (!w.together(joined(w.exec, [&](int l) { return masks[l]; }))) return;
  uint32_t given[kLanes];
  std::memcpy(given, w.at(i.a), sizeof given);
  auto* const d = w.at(i.d);
  const auto *const b = w.at(i.b), *const c = w.at(i.c);
  uint32_t inside = 0;
  for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    const uint32_t lane = uint32_t(l), by = b[l] & 31, clamp = c[l] & 31, segment = c[l] >> 8 & 31;
    const uint32_t last = (lane & segment) | (clamp & ~segment), first = lane & segment;
    int from = 0;
    bool ok = false;
    switch (kHow) {
      case kUp: from = l - int(by), ok = from >= int(last); break;
      case kDown: from = l + int(by), ok = from <= int(last); break;
      case kButterfly: from = int(lane ^ by), ok = from <= int(last); break;
      case kIndex: from = int(first | (by & ~segment)), ok = from <= int(last); break;
    }
    if (!ok) from = l;
    if (!(w.alive & masks[l] & 1u << from))
      w.stop("a shuffle reads a lane that does not take part");
    d[l] = given[from];
    inside |= uint32_t(ok) << l;
  }
  if (i.number >= 0) {
    uint32_t& p = w.predicate(uint32_t(i.number));
    p = (p & ~w.exec) | inside;
  }
}

enum Vote { kAllOf, kAnyOf, kBallot, kUniform };

template <Vote kHow> void count(Warp& w, const Instruction& i, uint32_t voters, uint32_t yes) {
  if (kHow == kBallot) {
    auto* const d = w.at(i.d);
    each(voters, [=](int l) { d[l] = yes; });
    return;
  }
  const bool holds = kHow == kAllOf   ? yes == voters
                     : kHow == kAnyOf ? yes != 0
                                      : yes == voters || yes == 0;
  uint32_t& p = w.predicate(i.d);
  p = (p & ~voters) | (holds ? voters : 0);
}
template <Vote kHow> void vote(Warp& w, const Instruction& i) {
  const auto* const masks = w.at(i.b);
  const uint32_t here = w.exec, ayes = w.predicate(i.a) ^ uint32_t(i.number);
  if (!w.together(joined(here, [&](int l) { return masks[l]; }))) return;
  // Groups of other masks may vote at the same time.
  for (uint32_t rest = here; rest;) {
    const uint32_t members = masks[std::countr_zero(rest)];
    const uint32_t group = joined(rest, [&](int l) { return uint32_t(masks[l] == members) << l; });
    rest &= ~group;
    count<kHow>(w, i, group, ayes & group);
  }
}
void meet(Warp& w, const Instruction& i) {  // bar.warp.sync
  w.together(w.at(i.a)[std::countr_zero(w.exec)]);
}
void active_lanes(Warp& w, const Instruction& i) {
  auto* const d = w.at(i.d);
  const uint32_t lanes = w.exec;
  each(w.exec, [=](int l) { d[l] = lanes; });
}

}  // namespace

bool decode_lanes(Decoding& d, Instruction& i) {
  if (d.is("shfl")) {
    if (!d.has("sync") || d.type() != Type::kB32) return false;
    i.run = d.has("up")     ? shuffle<kUp>
            : d.has("down") ? shuffle<kDown>
            : d.has("bfly") ? shuffle<kButterfly>
                            : shuffle<kIndex>;
    i.d = d.place(0, 32), i.a = d.place(1, 32), i.b = d.place(2, 32), i.c = d.place(3, 32);
    i.list = d.list({d.operand(4)}, 32);
    i.number = -1;
    if (d.operand(0).second >= 0) {
      Operand p;
      p.kind = Operand::kRegister, p.reg = d.operand(0).second;
      i.number = d.place(p, 1);
    }
    return true;
  }
  if (d.is("vote")) {
    if (!d.has("sync")) return false;
    const bool ballot = d.has("ballot");
    i.run = ballot         ? vote<kBallot>
            : d.has("all") ? vote<kAllOf>
            : d.has("any") ? vote<kAnyOf>
                           : vote<kUniform>;
    i.d = d.place(0, ballot ? 32 : 1);
    Operand p = d.operand(1);
    i.number = p.negated ? kAll : 0;
    p.negated = false;
    i.a = d.place(p, 1), i.b = d.place(2, 32);
    return true;
  }
  if (d.is("bar") && d.has("warp")) {
    i.run = meet, i.a = d.place(0, 32);
    return true;
  }
  if (d.is("activemask")) {
    i.run = active_lanes, i.d = d.place(0, 32);
    return true;
  }
  return false;
}

}  // namespace lrnn::emulator
