#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "tests/emulator/ptx/warp.h"

namespace lrnn::emulator {

void fault(const std::string& why) {
  std::fprintf(stderr, "emulator: %s\n", why.c_str());
  std::abort();
}

void Warp::stop(const std::string& why) const {
  std::string lane = "?";
  if (exec) lane = std::to_string(index * kLanes + std::countr_zero(exec));
  const uint32_t statement = pc ? pc - 1 : 0;
  fault(function->name + "\n  block (" + std::to_string(block->id.x) + ", " +
        std::to_string(block->id.y) + ", " + std::to_string(block->id.z) + "), thread " + lane +
        ", line " + std::to_string(function->code[statement].line) + " of the PTX: " + why);
}

Index index_named(std::string_view name) {
  static const std::map<std::string_view, Index> names = {
      {"%tid.x", Index::kThreadX},
      {"%tid.y", Index::kThreadY},
      {"%tid.z", Index::kThreadZ},
      {"%ntid.x", Index::kThreadsX},
      {"%ntid.y", Index::kThreadsY},
      {"%ntid.z", Index::kThreadsZ},
      {"%ctaid.x", Index::kBlockX},
      {"%ctaid.y", Index::kBlockY},
      {"%ctaid.z", Index::kBlockZ},
      {"%nctaid.x", Index::kBlocksX},
      {"%nctaid.y", Index::kBlocksY},
      {"%nctaid.z", Index::kBlocksZ},
      {"%laneid", Index::kLane},
      {"%warpid", Index::kWarp},
      {"%nwarpid", Index::kWarps},
      {"%cluster_ctarank", Index::kRank},
      {"%cluster_nctarank", Index::kRanks},
      {"%dynamic_smem_size", Index::kDynamicShared}};
  const auto found = names.find(name);
  if (found == names.end()) fault("register " + std::string(name) + " is not known");
  return found->second;
}

void LaneCopies::make(uint32_t before) {
  // Groups are closed in order, so those that are due come first.
  while (!waiting.empty() && waiting.front().group < before) {
    const LaneCopy& copy = waiting.front();
    std::memcpy(copy.to, copy.from, copy.bytes);
    std::memset(copy.to + copy.bytes, 0, copy.zeros);
    waiting.pop_front();
  }
}

void Warp::start(Block& of, int number, uint32_t lanes) {
  block = &of, function = of.function, index = number;
  alive = active = lanes, pc = 0, others = kNone;
  at_barrier = stalled = in_cluster = 0, regroup = false;
  for (Range& range : known) range = {};
  local.assign(function->local * kLanes, 0xff);
  for (int l = 0; l < kLanes; ++l) {
    copies[l].waiting.clear(), sends[l].waiting.clear();
    copies[l].groups = sends[l].groups = 0;
    sends[l].clocks.clear();
  }
  for (const Special& special : function->specials) {
    auto* const to = at(special.place);
    for (uint32_t l = 0; l < kLanes; ++l) to[l] = value_of(special.index, uint32_t(number), l);
  }
}

uint32_t Warp::value_of(Index index, uint32_t number, uint32_t lane) const {
  const Dim3 &size = block->size, &grid = block->grid, &id = block->id;
  const uint32_t thread = number * kLanes + lane, plane = size.x * size.y;
  switch (index) {
    case Index::kThreadX: return thread % plane % size.x;
    case Index::kThreadY: return thread % plane / size.x;
    case Index::kThreadZ: return thread / plane;
    case Index::kThreadsX: return size.x;
    case Index::kThreadsY: return size.y;
    case Index::kThreadsZ: return size.z;
    case Index::kBlockX: return id.x;
    case Index::kBlockY: return id.y;
    case Index::kBlockZ: return id.z;
    case Index::kBlocksX: return grid.x;
    case Index::kBlocksY: return grid.y;
    case Index::kBlocksZ: return grid.z;
    case Index::kLane: return lane;
    case Index::kWarp: return number;
    case Index::kWarps: return uint32_t(block->warps.size());
    case Index::kRank: return block->rank;
    case Index::kRanks: return uint32_t(block->cluster->blocks.size());
    case Index::kDynamicShared: return uint32_t(block->shared_bytes - function->shared);
  }
  return 0;
}

// The lanes at the lowest statement go on.
void Warp::choose_lanes() {
  regroup = false;
  for (uint32_t rest = active; rest; rest &= rest - 1) pcs[std::countr_zero(rest)] = pc;
  active = 0, others = kNone;
  const uint32_t ready = alive & ~at_barrier & ~stalled;
  if (!ready) return;
  uint32_t lowest = kNone;
  for (uint32_t rest = ready; rest; rest &= rest - 1)
    lowest = std::min(lowest, pcs[std::countr_zero(rest)]);
  for (uint32_t rest = ready; rest; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    if (pcs[l] == lowest)
      active |= 1u << l;
    else
      others = std::min(others, pcs[l]);
  }
  pc = lowest;
}

bool Warp::together(uint32_t mask) {
  const uint32_t absent = mask & alive & ~active;
  if (!absent) return true;
  uint32_t here = 0;
  for (uint32_t rest = absent & ~at_barrier; rest; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    if (pcs[l] == pc - 1) here |= 1u << l;
  }
  --pc;  // the statement is taken again, by all of them
  if (here == absent) {
    active |= here, stalled &= ~here;
    return false;
  }
  stalled |= active;
  regroup = true;
  return false;
}

void Warp::wait_and_retry() {
  stalled |= active;
  regroup = true;
}

bool Warp::run() {
  constexpr int64_t kTurn = 1 << 20;  // statements, then others have theirs
  if (!alive) return false;
  stalled = 0;
  choose_lanes();
  if (!active) return false;
  const uint64_t before = block->events;
  int64_t left = kTurn;
  const Instruction* const code = function->code.data();
  while (active && left-- > 0) {
    const Instruction& i = code[pc++];
    exec = active;
    if (i.guard != kNone) {
      const uint32_t holds = predicate(i.guard);
      exec &= i.unless ? ~holds : holds;
    }
    if (exec) i.run(*this, i);
    if (regroup || pc >= others) choose_lanes();
  }
  return left <= 0 || block->events != before;
}

// ------------------------------------------------------------------------------------- barriers
void settle(SharedBarrier& b, Block& block, uint64_t address) {
  ++block.events;
  if (b.pending != 0 || b.bytes != 0) return;
  b.phase ^= 1, b.pending = b.wanted;
  if (Races* const races = block.cluster->races.get()) {
    Races::Phase& phase = races->phase_of(block, address);
    phase.ended = phase.arriving;
    phase.arriving.clear();
  }
}

// Threads a barrier without a number waits for: warps that have not ended.
int Block::threads_alive_at(int) const {
  int sum = 0;
  for (const Warp& w : warps) sum += w.alive ? kLanes : 0;
  return sum;
}

void Block::arrive(Warp& w, int id, int wanted, bool waits) {
  NamedBarrier& b = barriers[id];
  ++events;
  if (b.arrived && wanted != b.wanted)
    w.stop("barrier " + std::to_string(id) + " is met with two numbers of threads");
  b.wanted = wanted;
  b.arrived += std::popcount(w.exec);
  if (Races* const races = w.races()) races->release(w, races->named(*this, id));
  if (waits) {
    for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
      const int l = std::countr_zero(rest);
      w.pcs[l] = w.pc, w.barrier_of[l] = id;
    }
    w.at_barrier |= w.exec;
    w.active &= ~w.exec;
    w.regroup = true;
  }
  check_barriers();
}

// A barrier opens when all have come; also when others have ended meanwhile. Lanes that ended count
// as come, in warps of which some lane is alive.
void Block::check_barriers() {
  for (int id = 0; id < 16; ++id) {
    NamedBarrier& b = barriers[id];
    if (!b.arrived) continue;
    int dead = 0;
    for (const Warp& w : warps) {
      uint32_t here = 0;
      for (uint32_t rest = w.at_barrier; rest; rest &= rest - 1)
        if (w.barrier_of[std::countr_zero(rest)] == id) here |= 1;
      if (here) dead += kLanes - std::popcount(w.alive);
    }
    const int wanted = b.wanted ? b.wanted : threads_alive_at(id);
    if (b.arrived + dead >= wanted) open(id);
  }
}

void Block::open(int id) {
  barriers[id] = {};
  ++events;
  Clocks known;
  if (Races* const races = cluster->races.get()) std::swap(known, races->named(*this, id));
  for (Warp& w : warps) {
    bool waits = false;
    for (uint32_t rest = w.at_barrier; rest; rest &= rest - 1)
      waits = waits || w.barrier_of[std::countr_zero(rest)] == id;
    if (waits && w.races()) w.races()->acquire(w, known);
    for (uint32_t rest = w.at_barrier; rest; rest &= rest - 1) {
      const int l = std::countr_zero(rest);
      if (w.barrier_of[l] == id) w.at_barrier &= ~(1u << l);
    }
    w.regroup = true;
  }
}

// --------------------------------------------------------------------------------------- cluster
void Cluster::make(PendingBulk& copy) {
  for (const auto& piece : copy.pieces) {
    piece.from ? std::memcpy(piece.to, piece.from, piece.bytes)
               : std::memset(piece.to, 0, piece.bytes);
    if (races) races->bring(*copy.block, copy.known, piece.to, piece.bytes, copy.line);
  }
  auto& barrier = *reinterpret_cast<SharedBarrier*>(copy.block->shared + copy.barrier);
  barrier.bytes -= int32_t(copy.bytes);
  if (races) join(races->phase_of(*copy.block, copy.barrier).arriving, copy.known);
  settle(barrier, *copy.block, copy.barrier);
}

void Cluster::run() {
  if (races) races->begin();
  for (;;) {
    bool alive = false, moved = false;
    for (Block& block : blocks)
      for (Warp& w : block.warps) {
        if (!w.alive) continue;
        alive = true;
        moved = w.run() || moved;
      }
    if (!alive) break;
    if (moved) continue;
    if (!bulk.empty()) {
      PendingBulk copy = std::move(bulk.front());
      bulk.pop_front();
      make(copy);
      continue;
    }
    std::string where;
    for (Block& block : blocks)
      for (Warp& w : block.warps)
        for (int l = 0; l < kLanes; ++l)
          if (w.alive >> l & 1 && (l == 0 || w.pcs[l] != w.pcs[l - 1]))
            where +=
                "\n  block " + std::to_string(block.id.x) + ", thread " +
                std::to_string(w.index * kLanes + l) + " at line " +
                std::to_string(block.function->code[w.pcs[l]].line) +
                (w.at_barrier >> l & 1 ? ", at barrier " + std::to_string(w.barrier_of[l]) : "");
    fault(blocks[0].function->name + ": threads wait for ever" + where);
  }
  if (!bulk.empty())
    fault(blocks[0].function->name + ": a block ended before a copy into its shared memory came");
}

}  // namespace lrnn::emulator
