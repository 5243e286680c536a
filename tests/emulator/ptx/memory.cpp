#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "tests/emulator/ptx/warp.h"

namespace lrnn::emulator {
namespace {

// Never destroyed: tensors may outlive main.
struct Taken {
  std::shared_mutex mutex;
  struct Piece {
    uint64_t end;
    std::unique_ptr<GlobalShadow> shadow;
  };
  std::map<uint64_t, Piece> pieces;  // by where they begin
};
Taken& taken() {
  static auto* const one = new Taken;
  return *one;
}

}  // namespace

void* take(size_t bytes) {
  constexpr size_t kAlign = 512;  // as the CUDA allocators give it
  const size_t room = (std::max(bytes, size_t(1)) + kAlign - 1) / kAlign * kAlign;
  void* const memory = std::aligned_alloc(kAlign, room);
  if (!memory) return nullptr;
  std::memset(memory, 0xff, room);
  std::unique_ptr<GlobalShadow> shadow;
  if (Races::wanted()) shadow = std::make_unique<GlobalShadow>();
  const auto begin = reinterpret_cast<uint64_t>(memory);
  const std::unique_lock lock(taken().mutex);
  taken().pieces[begin] = {begin + bytes, std::move(shadow)};
  return memory;
}

void give_back(void* memory) {
  if (!memory) return;
  {
    const std::unique_lock lock(taken().mutex);
    taken().pieces.erase(reinterpret_cast<uint64_t>(memory));
  }
  std::free(memory);
}

bool find_range(uint64_t address, Range& range) {
  const auto look = [&] {
    auto after = taken().pieces.upper_bound(address);
    if (after == taken().pieces.begin()) return false;
    --after;
    range = {after->first, after->second.end, after->second.shadow.get()};
    return address < range.end;
  };
  if (!Races::wanted()) {
    const std::shared_lock lock(taken().mutex);
    return look();
  }
  const std::unique_lock lock(taken().mutex);  // who comes first makes the cells
  if (!look()) return false;
  if (range.shadow->cells.empty()) range.shadow->cells.resize((range.end - range.begin) / 2 + 1);
  return true;
}

unsigned char* Warp::global(uint64_t address, size_t bytes, const char* what) {
  if (address % std::min(bytes, size_t(16)) != 0)
    stop(std::string(what) + " of " + std::to_string(bytes) +
         " bytes at an address that is no multiple of that");
  return memory(address, bytes, what);
}

unsigned char* Warp::memory(uint64_t address, size_t bytes, const char* what) {
  auto* const found = reinterpret_cast<unsigned char*>(address);
  for (const Range& range : known)
    if (address >= range.begin && address + bytes <= range.end) return found;
  // Generic addresses may also be those of shared and local memory, and of parameters.
  const auto within = [&](const unsigned char* begin, size_t size) {
    return found >= begin && found + bytes <= begin + size;
  };
  if (within(block->parameters, function->parameters) || within(local.data(), local.size()))
    return found;
  for (const Block& one : block->cluster->blocks)
    if (within(one.shared + kSharedBegin, one.shared_bytes)) return found;
  Range range;
  if (!find_range(address, range) || address + bytes > range.end)
    stop(std::string(what) + " of " + std::to_string(bytes) +
         " bytes outside all memory that was taken");
  known[next_known++ % std::size(known)] = range;
  return found;
}

Range* Warp::range_of(uint64_t address) {
  for (Range& range : known)
    if (address >= range.begin && address < range.end) return &range;
  return nullptr;
}

Block& Warp::block_of(uint64_t shared_address) {
  const uint64_t rank = shared_address >> kRankBits;
  if (rank > block->cluster->blocks.size())
    stop("an address of a block that is not in the cluster");
  return rank ? block->cluster->blocks[size_t(rank - 1)] : *block;
}

unsigned char* Warp::shared(uint64_t address, size_t bytes) {
  Block* const of = &block_of(address);
  address &= (uint64_t(1) << kRankBits) - 1;
  if (address < kSharedBegin || address + bytes > kSharedBegin + of->shared_bytes)
    stop("shared memory is touched at " + std::to_string(int64_t(address) - int64_t(kSharedBegin)) +
         ", " + std::to_string(bytes) + " bytes, of " + std::to_string(of->shared_bytes));
  if (address % std::min(bytes, size_t(16)) != 0)
    stop(std::to_string(bytes) +
         " bytes of shared memory at an address that is no multiple of that");
  return of->shared + address;
}

}  // namespace lrnn::emulator
