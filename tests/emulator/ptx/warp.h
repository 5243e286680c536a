#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/emulator/device.h"
#include "tests/emulator/ptx/races.h"
#include "tests/emulator/ptx/text.h"

// How a kernel runs: a warp is 32 lanes that take one statement after another together, each on its
// own values; lanes that branched apart wait for each other at the lowest statement. A block's
// warps take turns; a warp runs until it has to wait.
namespace lrnn::emulator {

constexpr int kLanes = 32;
constexpr uint32_t kAll = 0xffffffffu, kNone = 0xffffffffu;

struct Range {
  uint64_t begin = 0, end = 0;
  GlobalShadow* shadow = nullptr;  // where races are looked for
};

struct Warp;

struct Instruction {
  using Run = void (*)(Warp&, const Instruction&);
  Run run = nullptr;
  uint32_t d = 0, a = 0, b = 0, c = 0;  // places; with kConstant: among the constants
  uint32_t list = 0, count = 0;         // further places: Function::lists
  int64_t number = 0;                   // a displacement, an immediate value, where to branch
  uint32_t guard = kNone;               // the predicate's place
  bool unless = false;
  uint32_t line = 0;
};
constexpr uint32_t kConstant = 1u << 31;

// A place that is filled before the first statement: where lane, block and grid stand.
enum class Index {
  kThreadX,
  kThreadY,
  kThreadZ,
  kThreadsX,
  kThreadsY,
  kThreadsZ,
  kBlockX,
  kBlockY,
  kBlockZ,
  kBlocksX,
  kBlocksY,
  kBlocksZ,
  kLane,
  kWarp,
  kWarps,
  kRank,
  kRanks,
  kDynamicShared
};
struct Special {
  Index index;
  uint32_t place = 0;
};
Index index_named(std::string_view name);  // "%tid.x"

struct Function {
  std::string name;
  std::vector<Instruction> code;
  std::vector<uint32_t> lists;
  std::vector<uint32_t> constants;  // laid out as registers are
  std::vector<Special> specials;
  std::vector<Variable> arguments;
  size_t register_words = 0, shared = 0, local = 0, parameters = 0;
  uint32_t threads = 1024;
};

// A copy that goes on while the threads do. It is made as late as may be, when somebody waits for
// it, so that a read too early finds what was there before.
struct LaneCopy {
  unsigned char* to;
  const unsigned char* from;
  uint32_t bytes, zeros;  // zeros behind what is copied
  uint32_t group;
};

// What a lane has issued, in groups that are closed one after another.
struct LaneCopies {
  std::deque<LaneCopy> waiting;
  std::vector<uint32_t> clocks;  // of the closed groups, where races are looked for
  uint32_t groups = 0;
  void make(uint32_t before);  // those of groups before this one
};

struct Block;

struct Warp {
  Block* block = nullptr;
  const Function* function = nullptr;
  uint32_t* base[2] = {};  // registers, constants
  uint32_t exec = 0;       // lanes that run this statement
  uint32_t alive = 0, active = 0, pc = 0;
  uint32_t at_barrier = 0, stalled = 0;  // lanes that do not go on yet
  uint32_t others = kNone;               // the lowest statement of lanes that are not active
  uint32_t in_cluster = 0;               // lanes that have arrived at the cluster's barrier
  bool regroup = false;
  uint32_t pcs[kLanes] = {};
  int barrier_of[kLanes] = {};
  uint64_t cluster_phase[kLanes] = {};
  int index = 0;                     // in its block
  std::vector<unsigned char> local;  // of all lanes
  LaneCopies copies[kLanes], sends[kLanes];
  Range known[8] = {};  // memory that was found to be there,
  int next_known = 0;   // the oldest of it

  template <class T = uint32_t> T* at(uint32_t place) const {
    return reinterpret_cast<T*>(base[place >> 31] + (place & ~kConstant));
  }
  uint32_t& predicate(uint32_t place) const { return *at(place); }

  void start(Block& of, int number, uint32_t lanes);
  uint32_t value_of(Index index, uint32_t number, uint32_t lane) const;
  bool run();  // until it waits; false if it could not do anything
  void choose_lanes();
  // For a statement that lanes take together: true if those of `mask` are here, all in `active`.
  bool together(uint32_t mask);
  void wait_and_retry();  // the statement said "not yet"

  // Where a lane's address lies on the host, if all `bytes` of it may be touched.
  unsigned char* global(uint64_t address, size_t bytes, const char* what);  // on its size
  unsigned char* memory(uint64_t address, size_t bytes, const char* what);  // anywhere
  Range* range_of(uint64_t address);                                        // of what was found so
  unsigned char* shared(uint64_t address, size_t bytes);
  Block& block_of(uint64_t shared_address);
  [[noreturn]] void stop(const std::string& why) const;
  Races* races() const;
};

// One that threads meet at, by number.
struct NamedBarrier {
  int arrived = 0, wanted = 0;
};

struct Cluster;

struct Block {
  Cluster* cluster = nullptr;
  const Function* function = nullptr;
  Dim3 id, grid, size;
  uint32_t rank = 0;  // in its cluster
  unsigned char* shared = nullptr;
  uint64_t shared_bytes = 0;  // from kSharedBegin
  const unsigned char* parameters = nullptr;
  std::vector<Warp> warps;
  NamedBarrier barriers[16];
  uint64_t events = 0;  // whatever may let a warp go on

  int threads_alive_at(int id) const;
  void arrive(Warp& warp, int id, int wanted, bool waits);
  void open(int id);
  void check_barriers();
};

// Addresses of shared memory begin here, as the first kilobyte is the system's on Hopper.
constexpr uint64_t kSharedBegin = 1024;
// Addresses of other blocks of a cluster: the rank + 1 above these bits.
constexpr int kRankBits = 24;

// What the copy engine is to bring into shared memory; made when nobody can go on.
struct PendingBulk {
  struct Piece {
    unsigned char* to;
    const unsigned char* from;  // nothing: zeros
    uint32_t bytes;
  };
  Block* block = nullptr;  // the barrier's
  uint64_t barrier = 0;    // its address there
  int64_t bytes = 0;
  std::vector<Piece> pieces;
  Clocks known;  // by whom it was issued
  uint32_t line = 0;
};

struct Cluster {
  std::vector<Block> blocks;
  std::deque<PendingBulk> bulk;
  uint64_t phase = 0;
  std::unique_ptr<Races> races;  // where they are looked for
  uint32_t number = 0;           // in its grid
  LaunchOrder order;
  void run();
  void make(PendingBulk& copy);
  void check_barrier();
};

// mbarriers, as 8 bytes of shared memory.
struct SharedBarrier {
  static constexpr uint32_t kReady = 0x2d, kMost = 0xfff;
  uint32_t pending : 12, wanted : 12, phase : 1, mark : 7;  // kReady once it is initialised
  int32_t bytes;
};
static_assert(sizeof(SharedBarrier) == 8);
void settle(SharedBarrier& barrier, Block& block, uint64_t address);

inline Races* Warp::races() const { return block->cluster->races.get(); }

// What a round of the next loop writes, no other reads.
#ifdef __clang__
#define LRNN_EACH_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define LRNN_EACH_APART _Pragma("GCC ivdep")
#endif

// For every lane of the mask, each on its own. A whole warp is a loop that vectorises.
template <class F> inline __attribute__((always_inline)) void each(uint32_t mask, F&& f) {
  if (mask == kAll) {
    LRNN_EACH_APART
    for (int l = 0; l < kLanes; ++l) f(l);
  } else {
    for (; mask; mask &= mask - 1) f(std::countr_zero(mask));
  }
}

// The bits that f gives for some lane of the mask.
template <class F> uint32_t joined(uint32_t mask, F&& f) {
  uint32_t all = 0;
  for (; mask; mask &= mask - 1) all |= f(std::countr_zero(mask));
  return all;
}

// In the memory that was taken (memory.cpp).
bool find_range(uint64_t address, Range& range);

}  // namespace lrnn::emulator
