#include "tests/emulator/ptx/races.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/emulator/ptx/warp.h"

namespace lrnn::emulator {

void join(Clocks& to, const Clocks& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

bool Races::wanted() {
  static const bool yes = [] {
    const char* const set = std::getenv("LRNN_EMULATOR_RACES");
    return set && std::strcmp(set, "1") == 0;
  }();
  return yes;
}

Races::Races(Cluster& cluster) : cluster_(cluster) {
  for (const Block& block : cluster.blocks) warps_ = uint16_t(warps_ + block.warps.size());
  cells_.resize(cluster.blocks.size());
}

// Everybody's own clock is 1, and nobody knows of anything.
void Races::begin() {
  const size_t everybody = 3 * size_t(warps_) + 2;
  known_.assign(warps_, Clocks(everybody));
  for (size_t w = 0; w < warps_; ++w) known_[w][w] = 1;
  if (!cluster_.order.dependent)
    for (Clocks& clocks : known_) clocks[launches()] = 1;
  fenced_.assign(warps_, Clocks(everybody));
  groups_.assign(warps_, {});
  own_.assign(everybody, 1);
  phases_.clear(), named_.clear();
  cluster_clocks_.assign(everybody, 0);
  for (size_t b = 0; b < cells_.size(); ++b)
    cells_[b].assign(cluster_.blocks[b].shared_bytes, Cell());
}

uint16_t Races::threads_of(const Warp& w) const {
  return uint16_t(size_t(w.block->rank) * w.block->warps.size() + size_t(w.index));
}

std::string Races::name_of(uint16_t who) const {
  if (who == engine()) return "the copy engine";
  const std::string warp = "warp " + std::to_string(who % warps_);
  return who < warps_ ? warp : (who < 2 * warps_ ? "a product of " : "a bulk store of ") + warp;
}

// f(cell, address) for what lies in shared memory of the cluster; addresses elsewhere have none.
template <class F> void Races::each_cell(const unsigned char* at, size_t bytes, F&& f) {
  for (size_t b = 0; b < cells_.size(); ++b) {
    const unsigned char* const begin = cluster_.blocks[b].shared + kSharedBegin;
    if (at < begin || at >= begin + cluster_.blocks[b].shared_bytes) continue;
    const auto first = size_t(at - begin);
    for (size_t i = first; i < first + bytes; ++i) f(cells_[b][i], begin + i);
  }
}

void Races::found(const Access& by, const unsigned char* at, const char* what, const char* other,
                  uint16_t who, uint32_t line) const {
  size_t place = 0;
  for (const Block& block : cluster_.blocks)
    if (at >= block.shared && at < block.shared + kSharedBegin + block.shared_bytes)
      place = size_t(at - block.shared - kSharedBegin);
  fault(cluster_.blocks[0].function->name + ": a race in shared memory, byte " +
        std::to_string(place) + ", block " + std::to_string(cluster_.blocks[0].id.x) + "\n  " +
        name_of(by.who) + ", line " + std::to_string(by.line) + " of the PTX, " + what + "\n  " +
        name_of(who) + ", line " + std::to_string(line) + ", " + other);
}

void Races::read(const unsigned char* at, size_t bytes, const Access& by, bool atomic) {
  each_cell(at, bytes, [&](Cell& cell, const unsigned char* here) {
    const uint16_t writer = cell.writer;
    if (writer != kNobody && writer != by.who && !(atomic && cell.kind == kByAtomics)) {
      if (by.known[writer] < cell.clock)
        found(by, here, "reads what it has not waited for", "wrote it", writer, cell.line);
    }
    if (by.through_proxy && writer != kNobody && cell.kind != kByEngine) {
      // A fence of the writer behind its write, or of the reader that knew of it.
      const bool fenced = fenced_[writer][writer] > cell.clock ||
                          (by.warp && fenced_[threads_of(*by.warp)][writer] >= cell.clock);
      if (!fenced)
        found(by, here, "reads without a fence.proxy.async in between", "wrote it", writer,
              cell.line);
    }
    for (uint16_t i = 0; i < cell.readers_count; ++i)
      if (cell.readers[i].who == by.who) {
        cell.readers[i] = {by.who, by.clock, by.line};
        return;
      }
    // The last place is taken again and again: a race with who was there is missed, none invented.
    const uint16_t last = std::size(cell.readers) - 1;
    const uint16_t place = cell.readers_count < last ? cell.readers_count++ : last;
    if (place == last) cell.readers_count = last + 1;
    cell.readers[place] = {by.who, by.clock, by.line};
  });
}

void Races::write(const unsigned char* at, size_t bytes, const Access& by, Kind kind,
                  bool only_look) {
  each_cell(at, bytes, [&](Cell& cell, const unsigned char* here) {
    const uint16_t writer = cell.writer;
    const bool both_atomic = kind == kByAtomics && cell.kind == kByAtomics;
    if (writer != kNobody && writer != by.who && !both_atomic && by.known[writer] < cell.clock)
      found(by, here, "writes", "wrote before, and has not been waited for", writer, cell.line);
    for (uint16_t i = 0; i < cell.readers_count; ++i) {
      const Reader& reader = cell.readers[i];
      if (reader.who != by.who && !both_atomic && by.known[reader.who] < reader.clock)
        found(by, here, "writes", "reads what was there, and has not been waited for", reader.who,
              reader.line);
    }
    if (only_look) return;
    cell.readers_count = 0;
    cell.writer = by.who, cell.kind = kind, cell.clock = by.clock, cell.line = by.line;
  });
}

namespace {

uint32_t line_of(const Warp& w) { return w.function->code[w.pc ? w.pc - 1 : 0].line; }

}  // namespace

void Races::touch(Warp& by, const unsigned char* at, size_t bytes, How how) {
  const uint16_t who = threads_of(by);
  const Access access{who, known_[who][who], known_[who], line_of(by), false, &by};
  if (how != kWrite) read(at, bytes, access, how == kAtomic);
  if (how != kRead) write(at, bytes, access, how == kAtomic ? kByAtomics : kByThreads);
}

void Races::wait_for_launches(Warp& by) { known(by)[launches()] = 1; }

void Races::touch_global(Warp& by, uint64_t address, size_t bytes, How how) {
  const Range* const range = by.range_of(address);
  if (!range || !range->shadow || range->shadow->cells.empty()) return;
  constexpr uint32_t kMany = ~0u;
  const auto& order = cluster_.order;
  const uint32_t me = cluster_.number + 1;
  const bool waited = known(by)[launches()] != 0;
  const auto race = [&](const std::string& what) {
    by.stop("a race in memory, byte " + std::to_string(address - range->begin) + " of " +
            std::to_string(range->end - range->begin) + ": " + what);
  };
  if (!waited && how != kRead) race("written before griddepcontrol.wait");
  for (uint64_t i = (address - range->begin) / 2; i <= (address + bytes - 1 - range->begin) / 2;
       ++i) {
    GlobalCell& cell = range->shadow->cells[i];
    const bool written_here = cell.write_launch == order.number;
    if (!waited && !written_here && cell.write_launch >= order.first)
      race("read before griddepcontrol.wait, and a launch before wrote it");
    if (written_here && cell.writer != me && (how != kAtomic || cell.writer != kMany))
      race("two blocks use it, and one writes");
    if (how == kRead) {
      if (cell.read_launch != order.number)
        cell.read_launch = order.number, cell.reader = me;
      else if (cell.reader != me)
        cell.reader = kMany;
    } else {
      if (cell.read_launch == order.number && cell.reader != me)
        race("one block reads it and another writes");
      cell.write_launch = order.number, cell.writer = how == kAtomic ? kMany : me;
    }
  }
}

void Races::start_write(Warp& by, const unsigned char* at, size_t bytes) {
  const uint16_t who = threads_of(by);
  write(at, bytes, {who, known_[who][who], known_[who], line_of(by), false, &by}, kByThreads, true);
}

// Their clock is known to a warp only once it has waited for them.
void Races::read_by_products(Warp& by, const unsigned char* at, size_t bytes) {
  const uint16_t who = products_of(by);
  read(at, bytes, {who, own_[who], known(by), line_of(by), true, &by}, false);
}
void Races::read_by_sends(Warp& by, const unsigned char* at, size_t bytes) {
  const uint16_t who = sends_of(by);
  read(at, bytes, {who, own_[who], known(by), line_of(by), true, &by}, false);
}

void Races::fence(Warp& by) {
  const uint16_t who = threads_of(by);
  ++known_[who][who];
  fenced_[who] = known_[who];
}

void Races::close_products(Warp& by) { groups_[threads_of(by)].push_back(own_[products_of(by)]++); }
void Races::wait_products(Warp& by, size_t left) {
  auto& groups = groups_[threads_of(by)];
  for (; groups.size() > left; groups.pop_front()) known(by)[products_of(by)] = groups.front();
}
uint32_t Races::close_sends(Warp& by) { return own_[sends_of(by)]++; }
void Races::wait_sends(Warp& by, uint32_t clock) {
  uint32_t& mine = known(by)[sends_of(by)];
  mine = std::max(mine, clock);
}

Clocks Races::issue(Warp& by) {
  const uint16_t who = threads_of(by);
  Clocks clocks = known_[who];
  clocks[engine()] = ++own_[engine()];
  ++known_[who][who];
  return clocks;
}
void Races::bring(const Block&, Clocks& known, const unsigned char* at, size_t bytes,
                  uint32_t line) {
  write(at, bytes, {engine(), known[engine()], known, line, true, nullptr}, kByEngine);
}

void Races::release(Warp& by, Clocks& to) {
  const uint16_t who = threads_of(by);
  join(to, known_[who]);
  ++known_[who][who];
}
void Races::acquire(Warp& by, const Clocks& from) { join(known(by), from); }

}  // namespace lrnn::emulator
