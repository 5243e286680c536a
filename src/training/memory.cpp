#include "training/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

namespace lrnn::training {
namespace {

constexpr size_t kLine = 64;            // a cache line, and the widest vector
constexpr size_t kHugePage = 2u << 20;  // one page fault instead of 512
constexpr size_t kFloor = 64u << 20;    // kept whatever the peak
constexpr int kNear = 2;                // a block may be this many classes larger than asked

// In front of every block's data.
struct alignas(kLine) Block {
  size_t bytes;  // all of it
  int cls;
  Block* next;  // while free

  void* data() { return this + 1; }
  static Block* of(void* data) { return static_cast<Block*>(data) - 1; }
};
static_assert(sizeof(Block) == kLine);

// Eight sizes per power of two: at most an eighth of a large block is not asked for.
struct Class {
  size_t bytes;
  int index;
  static constexpr int kCount = 8 * 64;

  explicit Class(size_t wanted) {
    const int exponent = int(std::bit_width(wanted - 1));
    const int shift = std::max(6, exponent - 4);  // never finer than a cache line
    const size_t step = size_t{1} << shift;
    bytes = (wanted + step - 1) / step * step;
    index = 8 * exponent + int(((bytes - 1) >> shift) & 7);
  }
};

class ReusingAllocator final : public c10::Allocator {
 public:
  // Never destroyed: tensors in static variables outlive main.
  static ReusingAllocator& the() {
    static auto* const one = new ReusingAllocator;
    return *one;
  }

  c10::DataPtr allocate(size_t n) override {
    void* const data = n ? take(n)->data() : nullptr;
    return {data, data, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, size_t count) const override {
    default_copy_data(to, from, count);
  }

  MemoryUse use() {
    const std::lock_guard lock(mutex_);
    return use_;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    drop_cache();
  }

 private:
  Block* take(size_t n) {
    if (n > PTRDIFF_MAX - kHugePage) throw std::bad_alloc();
    const Class wanted(n + sizeof(Block));
    const std::lock_guard lock(mutex_);
    Block* block = from_cache(wanted.index);
    if (!block) block = from_system(wanted);
    use_.live += block->bytes;
    use_.peak = std::max(use_.peak, use_.live);
    return block;
  }

  static void give_back(void* data) {
    if (data) the().keep(Block::of(data));
  }

  void keep(Block* block) {
    const std::lock_guard lock(mutex_);
    use_.live -= block->bytes;
    use_.cached += block->bytes;
    block->next = free_[block->cls];
    free_[block->cls] = block;
    // Too much of it means that the sizes have changed: none of it is likely to fit again.
    if (use_.live + use_.cached > use_.peak + use_.peak / 2 + kFloor) drop_cache();
  }

  Block* from_cache(int cls) {
    for (int i = cls; i <= std::min(cls + kNear, Class::kCount - 1); ++i)
      if (Block* const block = free_[i]) {
        free_[i] = block->next;
        use_.cached -= block->bytes;
        return block;
      }
    return nullptr;
  }

  Block* from_system(const Class& c) {
    const size_t align = c.bytes >= kHugePage ? kHugePage : kLine;
    void* memory = nullptr;
    if (posix_memalign(&memory, align, c.bytes) != 0) {
      drop_cache();
      if (posix_memalign(&memory, align, c.bytes) != 0) throw std::bad_alloc();
    }
#ifdef MADV_HUGEPAGE
    if (align == kHugePage) madvise(memory, c.bytes, MADV_HUGEPAGE);  // a wish: may fail
#endif
    return new (memory) Block{c.bytes, c.index, nullptr};
  }

  void drop_cache() {
    for (Block*& first : free_)
      while (Block* const block = first) {
        first = block->next;
        std::free(block);
      }
    use_.cached = 0;
  }

  std::mutex mutex_;
  Block* free_[Class::kCount] = {};
  MemoryUse use_;
};

}  // namespace

void reuse_memory() { c10::SetCPUAllocator(&ReusingAllocator::the(), 1); }
MemoryUse memory_use() { return ReusingAllocator::the().use(); }
void release_memory() { ReusingAllocator::the().release(); }

}  // namespace lrnn::training
