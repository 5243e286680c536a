#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

// Races in shared memory. Whoever touches it (warps, and what they leave to the copy engine and to
// the tensor cores) has a clock; barriers hand on what is known of others' clocks. A write must
// know of all reads and writes before it, a read of the last write; the tensor cores and the copy
// engine, which see memory through a proxy of their own, also of a fence behind it.
namespace lrnn::emulator {

struct Block;
struct Cluster;
struct Warp;

// What was last done to each two bytes of memory, and by which cluster of blocks of which launch.
struct GlobalCell {
  uint32_t write_launch = 0, writer = 0, read_launch = 0, reader = 0;
};
struct GlobalShadow {
  std::vector<GlobalCell> cells;
};

// Launches are counted. A dependent one may begin before those before it have ended, back to the
// first that is not.
struct LaunchOrder {
  uint32_t number = 0, first = 0;
  bool dependent = false;
};

using Clocks = std::vector<uint32_t>;  // what is known of everybody
void join(Clocks& to, const Clocks& from);

class Races {
 public:
  static bool wanted();  // the environment asks for them: LRNN_EMULATOR_RACES=1

  explicit Races(Cluster& cluster);
  void begin();  // a new cluster of blocks

  enum How { kRead, kWrite, kAtomic };
  // By the threads of a warp.
  void touch(Warp& by, const unsigned char* at, size_t bytes, How how);
  // A copy that the warp will wait for: nobody may still need what is there.
  void start_write(Warp& by, const unsigned char* at, size_t bytes);
  // The same in memory. Blocks of a launch must not wait for each other there, and a dependent
  // launch must not touch what those before it may still use (griddepcontrol.wait).
  void touch_global(Warp& by, uint64_t address, size_t bytes, How how);
  void wait_for_launches(Warp& by);
  // By what the warp has started and not waited for.
  void read_by_products(Warp& by, const unsigned char* at, size_t bytes);
  void read_by_sends(Warp& by, const unsigned char* at, size_t bytes);
  void fence(Warp& by);  // between the threads' view and that of the copy engine and the products

  void close_products(Warp& by);              // a group of them
  void wait_products(Warp& by, size_t left);  // all but the last groups have ended
  uint32_t close_sends(Warp& by);             // the group's clock
  void wait_sends(Warp& by, uint32_t clock);

  // What a bulk copy knows when it is issued, and its write when it comes.
  Clocks issue(Warp& by);
  void bring(const Block& to, Clocks& known, const unsigned char* at, size_t bytes, uint32_t line);

  void release(Warp& by, Clocks& to);  // arrives
  void acquire(Warp& by, const Clocks& from);

  // Of an mbarrier: what those know who arrived, and those who let the last phase end.
  struct Phase {
    Clocks arriving, ended;
  };
  Phase& phase_of(const Block& block, uint64_t address) { return phases_[{&block, address}]; }
  Clocks& named(const Block& block, int id) { return named_[{&block, id}]; }
  Clocks& cluster() { return cluster_clocks_; }

 private:
  struct Reader {
    uint16_t who;
    uint32_t clock, line;
  };
  struct Cell {  // a byte of shared memory
    uint16_t writer = kNobody, kind = 0;
    uint32_t clock = 0, line = 0;
    uint16_t readers_count = 0;
    Reader readers[6];
  };
  static constexpr uint16_t kNobody = 0xffff;
  enum Kind : uint16_t { kByThreads, kByAtomics, kByEngine };

  struct Access {
    uint16_t who;
    uint32_t clock;
    const Clocks& known;
    uint32_t line;
    bool through_proxy;
    const Warp* warp;
  };
  template <class F> void each_cell(const unsigned char* at, size_t bytes, F&& f);
  void read(const unsigned char* at, size_t bytes, const Access& by, bool atomic);
  void write(const unsigned char* at, size_t bytes, const Access& by, Kind kind,
             bool only_look = false);
  [[noreturn]] void found(const Access& by, const unsigned char* at, const char* what,
                          const char* other, uint16_t who, uint32_t line) const;

  uint16_t threads_of(const Warp& w) const;
  uint16_t products_of(const Warp& w) const { return uint16_t(threads_of(w) + warps_); }
  uint16_t sends_of(const Warp& w) const { return uint16_t(threads_of(w) + 2 * warps_); }
  uint16_t engine() const { return uint16_t(3 * warps_); }
  uint16_t launches() const { return uint16_t(3 * warps_ + 1); }  // those before this one
  std::string name_of(uint16_t who) const;
  Clocks& known(const Warp& w) { return known_[threads_of(w)]; }

  Cluster& cluster_;
  uint16_t warps_ = 0;                        // of all blocks
  std::vector<Clocks> known_;                 // by warp
  std::vector<Clocks> fenced_;                // what a warp knew at its last fence
  std::vector<std::deque<uint32_t>> groups_;  // of products not waited for: their clocks
  Clocks own_;                                // clocks of products, sends and the engine
  std::map<std::pair<const Block*, uint64_t>, Phase> phases_;
  std::map<std::pair<const Block*, int>, Clocks> named_;
  Clocks cluster_clocks_;
  std::vector<std::vector<Cell>> cells_;  // by block
};

}  // namespace lrnn::emulator
