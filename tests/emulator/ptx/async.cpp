#include "tests/emulator/ptx/decode.h"
#include "tests/emulator/runtime/tensor_map.h"

// Copies that go on by themselves (cp.async), the copy engine's (cp.async.bulk), and the barriers
// in shared memory that count what it brought. All of them are made late: when they are waited for.
namespace lrnn::emulator {
namespace {

// ------------------------------------------------------------------------------- cp.async
void copy(Warp& w, const Instruction& i) {
  const auto *const to = w.at(i.a), *const from_low = w.at(i.b);
  const uint32_t lanes = w.exec;
  each(lanes, [&](int l) {
    w.exec = 1u << l;
    const auto bytes = uint32_t(i.number);
    const uint32_t copied = i.count ? std::min(w.at(i.c)[l], bytes) : bytes;
    const uint64_t from = reinterpret_cast<const uint64_t*>(from_low)[l] +
                          uint64_t(int64_t(int32_t(w.function->lists[i.list + 1])));
    LaneCopy one;
    one.to = w.shared(to[l] + w.function->lists[i.list], bytes);
    if (copied && from % bytes)
      w.stop("a copy of " + std::to_string(bytes) +
             " bytes from an address that is no multiple of that");
    one.from = copied ? w.memory(from, copied, "a copy") : one.to;
    one.bytes = copied, one.zeros = bytes - copied, one.group = w.copies[l].groups;
    w.copies[l].waiting.push_back(one);
    if (w.races()) w.races()->start_write(w, one.to, bytes);
    if (w.races() && copied) w.races()->touch_global(w, from, copied, Races::kRead);
  });
  w.exec = lanes;
}
void commit(Warp& w, const Instruction&) {
  each(w.exec, [&](int l) { ++w.copies[l].groups; });
}
// Groups before this one have arrived.
void arrived(Warp& w, int lane, uint32_t before) {
  LaneCopies& mine = w.copies[lane];
  if (w.races())
    for (const LaneCopy& copy : mine.waiting)
      if (copy.group < before) w.races()->touch(w, copy.to, copy.bytes + copy.zeros, Races::kWrite);
  mine.make(before);
}
void wait(Warp& w, const Instruction& i) {
  each(w.exec, [&](int l) {
    if (w.copies[l].groups > uint32_t(i.number))
      arrived(w, l, w.copies[l].groups - uint32_t(i.number));
  });
  ++w.block->events;
}
void wait_for_all(Warp& w, const Instruction&) {
  each(w.exec, [&](int l) { arrived(w, l, kNone); });
  ++w.block->events;
}
void commit_sends(Warp& w, const Instruction&) {
  each(w.exec, [&](int l) {
    ++w.sends[l].groups;
    if (w.races()) w.sends[l].clocks.push_back(w.races()->close_sends(w));
  });
}
void wait_for_sends(Warp& w, const Instruction& i) {
  each(w.exec, [&](int l) {
    LaneCopies& mine = w.sends[l];
    if (mine.groups <= uint32_t(i.number)) return;
    mine.make(mine.groups - uint32_t(i.number));
    if (w.races()) w.races()->wait_sends(w, mine.clocks[mine.groups - uint32_t(i.number) - 1]);
  });
  ++w.block->events;
}

// --------------------------------------------------------------------------- barriers of bytes
SharedBarrier& barrier_at(Warp& w, uint64_t address) {
  return *reinterpret_cast<SharedBarrier*>(w.shared(address, 8));
}
template <class F> void each_barrier(Warp& w, const Instruction& i, F&& f) {
  const uint32_t lanes = w.exec;
  each(lanes, [&](int l) {
    w.exec = 1u << l;
    SharedBarrier& b = barrier_at(w, w.at(i.a)[l] + uint64_t(i.number));
    if (b.mark != SharedBarrier::kReady) w.stop("a barrier that was not initialised");
    f(b, l, w.at(i.a)[l] + uint64_t(i.number));
  });
  w.exec = lanes;
}
void init(Warp& w, const Instruction& i) {
  const uint32_t lanes = w.exec;
  each(lanes, [&](int l) {
    SharedBarrier& b = barrier_at(w, w.at(i.a)[l] + uint64_t(i.number));
    b = {};
    const uint32_t count = w.at(i.b)[l];
    if (count == 0 || count > SharedBarrier::kMost)
      w.stop("a barrier of " + std::to_string(count) + " threads");
    b.pending = b.wanted = count & SharedBarrier::kMost, b.mark = SharedBarrier::kReady;
    if (w.races()) w.races()->phase_of(*w.block, w.at(i.a)[l] + uint64_t(i.number)) = {};
  });
  ++w.block->events;
}
template <bool kExpects> void arrive(Warp& w, const Instruction& i) {
  each_barrier(w, i, [&](SharedBarrier& b, int l, uint64_t address) {
    if (b.pending == 0) w.stop("more arrive at a barrier than it waits for");
    if (kExpects) b.bytes += int32_t(w.at(i.b)[l]);
    --b.pending;
    if (w.races()) w.races()->release(w, w.races()->phase_of(*w.block, address).arriving);
    settle(b, *w.block, address);
  });
}
void try_wait(Warp& w, const Instruction& i) {
  uint32_t done = 0;
  each_barrier(w, i, [&](SharedBarrier& b, int l, uint64_t address) {
    if (b.phase == (w.at(i.b)[l] & 1)) return;
    done |= 1u << l;
    if (w.races()) w.races()->acquire(w, w.races()->phase_of(*w.block, address).ended);
  });
  uint32_t& p = w.predicate(i.d);
  p = (p & ~w.exec) | done;
  if (!done) w.wait_and_retry();
}

// ------------------------------------------------------------------------------- copy engine
const TensorMap& map_at(Warp& w, uint64_t address) {
  auto* const map = reinterpret_cast<const TensorMap*>(w.global(address, 16, "a tensor map"));
  if (map->magic != TensorMap::kMagic) w.stop("no tensor map is there");
  return *map;
}

// f(bytes from the beginning of the box in shared memory, the address or 0 for what lies outside)
// for every 16 bytes of the box that begins at `first`.
template <class F> void each_piece(Warp& w, const TensorMap& map, const int64_t* first, F&& f) {
  if (map.swizzle != 3 || map.interleave != 0) w.stop("only boxes of 128 swizzled bytes are known");
  const uint32_t row_bytes = uint32_t(map.box[0]) * map.element_bytes;
  if (row_bytes != 128) w.stop("a box whose rows are not 128 bytes");
  uint64_t rows = 1;
  for (int k = 1; k < map.rank; ++k) {
    rows *= map.box[k];
    if (map.element_strides[k] != 1) w.stop("boxes that leave elements out are not known");
  }
  for (uint64_t row = 0; row < rows; ++row) {
    uint64_t rest = row, address = map.base;
    bool inside = true;
    for (int k = 1; k < map.rank; ++k) {
      const int64_t at = first[k] + int64_t(rest % map.box[k]);
      rest /= map.box[k];
      inside = inside && at >= 0 && uint64_t(at) < map.size(k);
      address += uint64_t(at) * map.strides[k - 1];
    }
    for (uint32_t piece = 0; piece < 8; ++piece) {
      const int64_t element = first[0] + int64_t(piece * 16 / map.element_bytes);
      const int64_t left =
          std::clamp<int64_t>((int64_t(map.size(0)) - element) * map.element_bytes, 0, 16);
      const bool here = inside && element >= 0 && left > 0;
      f(row * 128 + piece * 16, here ? address + uint64_t(element) * map.element_bytes : 0,
        uint32_t(here ? left : 0));
    }
  }
}

void pieces_of_memory(Warp& w, uint64_t address, size_t bytes, Races::How how) {
  if (w.races()) w.races()->touch_global(w, address, bytes, how);
}

// Into shared memory: [to], [from], bytes, [barrier], or [to], [map, {..}], [barrier].
template <bool kTensor> void bring(Warp& w, const Instruction& i) {
  const uint32_t lanes = w.exec, *const more = w.function->lists.data() + i.list;
  each(lanes, [&](int l) {
    w.exec = 1u << l;
    PendingBulk copy;
    const uint64_t to = w.at(i.a)[l], barrier = w.at(i.c)[l];
    if (barrier_at(w, barrier).mark != SharedBarrier::kReady)
      w.stop("a barrier that was not initialised");
    copy.block = &w.block_of(barrier);
    copy.barrier = barrier & ((uint64_t(1) << kRankBits) - 1);
    if constexpr (kTensor) {
      const TensorMap& map = map_at(w, w.at<uint64_t>(i.b)[l]);
      if (to % 1024) w.stop("a swizzled box that does not lie on 1024 bytes");
      int64_t first[TensorMap::kMostRank] = {};
      if (i.count != map.rank) w.stop("a box of another number of dimensions");
      for (uint32_t k = 0; k < i.count; ++k) first[k] = int32_t(w.at(more[k])[l]);
      each_piece(w, map, first, [&](uint64_t at, uint64_t from, uint32_t bytes) {
        unsigned char* const there = w.shared(to + (at ^ (at >> 7 & 7) << 4), 16);
        if (bytes)
          copy.pieces.push_back({there, w.global(from, bytes >= 16 ? 16 : 2, "a box"), bytes});
        if (bytes < 16) copy.pieces.push_back({there + bytes, nullptr, 16 - bytes});
        copy.bytes += 16;
      });
    } else {
      const uint32_t bytes = w.at(more[0])[l];
      if (bytes % 16) w.stop("the copy engine takes multiples of 16 bytes");
      copy.bytes = bytes;
      pieces_of_memory(w, w.at<uint64_t>(i.b)[l], bytes, Races::kRead);
      w.shared(to + bytes - 16, 16),
          w.global(w.at<uint64_t>(i.b)[l] + bytes - 16, 16, "a bulk copy");
      copy.pieces.push_back(
          {w.shared(to, 16), w.global(w.at<uint64_t>(i.b)[l], 16, "a bulk copy"), bytes});
    }
    if (kTensor)
      for (const auto& piece : copy.pieces)
        if (piece.from)
          pieces_of_memory(w, reinterpret_cast<uint64_t>(piece.from), piece.bytes, Races::kRead);
    copy.line = i.line;
    if (w.races()) copy.known = w.races()->issue(w);
    w.block->cluster->bulk.push_back(std::move(copy));
  });
  w.exec = lanes;
  ++w.block->events;
}
// Out of shared memory: [to], [from], bytes, or [map, {..}], [from]. Read when it is waited for.
template <bool kTensor> void send(Warp& w, const Instruction& i) {
  const uint32_t lanes = w.exec, *const more = w.function->lists.data() + i.list;
  each(lanes, [&](int l) {
    w.exec = 1u << l;
    LaneCopies& mine = w.sends[l];
    const uint64_t from = w.at(i.a)[l];
    const auto add = [&](unsigned char* to, const unsigned char* source, uint32_t bytes) {
      mine.waiting.push_back({to, source, bytes, 0, mine.groups});
      pieces_of_memory(w, reinterpret_cast<uint64_t>(to), bytes, Races::kWrite);
      if (w.races()) w.races()->read_by_sends(w, source, bytes);
    };
    if constexpr (kTensor) {
      const TensorMap& map = map_at(w, w.at<uint64_t>(i.b)[l]);
      int64_t first[TensorMap::kMostRank] = {};
      if (i.count != map.rank) w.stop("a box of another number of dimensions");
      for (uint32_t k = 0; k < i.count; ++k) first[k] = int32_t(w.at(more[k])[l]);
      each_piece(w, map, first, [&](uint64_t at, uint64_t to, uint32_t bytes) {
        if (bytes)
          add(w.global(to, bytes >= 16 ? 16 : 2, "a box"),
              w.shared(from + (at ^ (at >> 7 & 7) << 4), 16), bytes);
      });
    } else {
      const uint32_t bytes = w.at(more[0])[l];
      if (bytes % 16) w.stop("the copy engine takes multiples of 16 bytes");
      w.shared(from + bytes - 16, 16),
          w.global(w.at<uint64_t>(i.b)[l] + bytes - 16, 16, "a bulk copy");
      add(w.global(w.at<uint64_t>(i.b)[l], 16, "a bulk copy"), w.shared(from, 16), bytes);
    }
  });
  w.exec = lanes;
}

// The register of an address without displacement, of this width.
uint32_t plain_address(Decoding& d, const Operand& o, bool wide) {
  uint32_t place = 0;
  int64_t added = 0;
  if (d.address(o, place, added) != wide || added != 0 || o.reg < 0)
    d.stop("an address of this kind is not known here");
  return place;
}

bool decode_bulk(Decoding& d, Instruction& i) {
  if (d.has("commit_group")) return i.run = commit_sends, true;
  if (d.has("wait_group")) {
    i.run = wait_for_sends, i.number = int64_t(d.number(0));
    return true;
  }
  const bool tensor = d.has("tensor"), brings = d.has("shared::cluster");
  if (brings ? !d.has("global") : !d.has("shared::cta")) return false;
  if (brings) {
    i.run = tensor ? bring<true> : bring<false>;
    i.a = plain_address(d, d.operand(0), false);
    i.c = plain_address(d, d.operand(tensor ? 2 : 3), false);
  } else {
    i.run = tensor ? send<true> : send<false>;
    i.a = plain_address(d, d.operand(1), false);
  }
  Operand memory = d.operand(brings ? 1 : 0);
  if (tensor) {
    if (memory.items.size() != 1) return false;
    const auto items = memory.items[0].items;
    i.list = d.list(items, 32), i.count = uint32_t(items.size());
    memory.items.clear();
  } else {
    i.list = d.list({d.operand(2)}, 32);
  }
  i.b = plain_address(d, memory, true);
  return true;
}

}  // namespace

bool decode_async(Decoding& d, Instruction& i) {
  if (d.is("mbarrier")) {
    if (d.address(d.operand(d.has("init") ? 0 : 1), i.a, i.number) &&
        d.operand(d.has("init") ? 0 : 1).reg >= 0)
      return false;
    if (d.has("init")) {
      i.run = init, i.b = d.place(1, 32);
    } else if (d.has("arrive")) {
      if (d.operand(0).kind != Operand::kSink || !d.has("shared::cta")) return false;
      const bool expects = d.has("expect_tx");
      if (!expects && d.size() > 2) return false;
      i.run = expects ? arrive<true> : arrive<false>;
      if (expects) i.b = d.place(2, 32);
    } else if ((d.has("try_wait") || d.has("test_wait")) && d.has("parity")) {
      i.run = try_wait, i.d = d.place(0, 1), i.b = d.place(2, 32);
    } else {
      return false;
    }
    return true;
  }
  if (!d.is("cp") || !d.has("async")) return false;
  if (d.has("bulk")) return decode_bulk(d, i);
  if (d.has("commit_group")) return i.run = commit, true;
  if (d.has("wait_group")) {
    i.run = wait, i.number = int64_t(d.number(0));
    return true;
  }
  if (d.has("wait_all")) return i.run = wait_for_all, true;
  if (!d.has("shared") || !d.has("global")) return false;
  int64_t to_added = 0, from_added = 0;
  if (d.address(d.operand(0), i.a, to_added) || !d.address(d.operand(1), i.b, from_added))
    return false;
  i.run = copy, i.number = int64_t(d.number(2));
  if (d.size() > 3) i.c = d.place(3, 32), i.count = 1;
  i.list = d.raw_list({uint32_t(to_added), uint32_t(from_added)});
  return true;
}

}  // namespace lrnn::emulator
