#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/emulator/device.h"
#include "tests/emulator/ptx/decode.h"
#include "tests/emulator/ptx/fat_binary.h"

// Kernels by the address of their stubs, and their grids: blocks are spread over the cores, each
// cluster of them on one.
namespace lrnn::emulator {
namespace {

struct Kernel {
  int binary = 0;
  std::string name;
  std::unique_ptr<const Function> function;  // decoded when it is needed first
};

struct Registry {
  std::mutex mutex;
  std::vector<const void*> wrappers;
  std::map<int, Module> modules;
  std::map<const void*, Kernel> kernels;
};
Registry& registry() {
  static auto* const one = new Registry;  // never destroyed, as libraries are unloaded late
  return *one;
}

const Function& function_of(const void* stub) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const auto found = r.kernels.find(stub);
  if (found == r.kernels.end()) fault("a kernel that was not registered");
  Kernel& kernel = found->second;
  if (!kernel.function) {
    if (!r.modules.contains(kernel.binary))
      r.modules[kernel.binary] = find_entries(ptx_of(r.wrappers[size_t(kernel.binary)]));
    Text text = parse_entry(r.modules[kernel.binary], kernel.name);
    kernel.function = std::make_unique<const Function>(decode(text));
  }
  return *kernel.function;
}

LaunchOrder next_in_order(bool dependent) {
  static std::mutex mutex;
  static LaunchOrder last;
  const std::lock_guard lock(mutex);
  ++last.number;
  last.dependent = dependent;
  if (!dependent) last.first = last.number;
  return last;
}

template <class T> T* aligned(std::vector<T>& room, size_t count, size_t align) {
  room.resize(count + align / sizeof(T));
  const auto at = reinterpret_cast<uintptr_t>(room.data());
  return room.data() + ((at + align - 1) / align * align - at) / sizeof(T);
}

// What one thread of the host needs to run a cluster, kept from one to the next.
class Worker {
 public:
  Worker(const Function& f, const Launch& l, const unsigned char* parameters,
         const LaunchOrder& order)
      : l_(l) {
    const auto blocks = size_t(l.cluster.count());
    const size_t warps = (size_t(l.block.count()) + kLanes - 1) / kLanes;
    const size_t each_shared = (kSharedBegin + f.shared + l.shared + 1023) / 1024 * 1024;
    uint32_t* const registers = aligned(registers_, blocks * warps * f.register_words, 64);
    unsigned char* const shared = aligned(shared_, blocks * each_shared, 1024);
    cluster_.blocks.resize(blocks);
    for (size_t b = 0; b < blocks; ++b) {
      Block& block = cluster_.blocks[b];
      block.cluster = &cluster_, block.function = &f, block.rank = uint32_t(b);
      block.grid = l.grid, block.size = l.block, block.parameters = parameters;
      block.shared = shared + b * each_shared, block.shared_bytes = f.shared + l.shared;
      block.warps.resize(warps);
      for (size_t w = 0; w < warps; ++w) {
        block.warps[w].base[0] = registers + (b * warps + w) * f.register_words;
        block.warps[w].base[1] = const_cast<uint32_t*>(f.constants.data());
      }
    }
    cluster_.order = order;
    if (Races::wanted()) cluster_.races = std::make_unique<Races>(cluster_);
  }

  void run(int64_t number) {
    const Dim3 clusters = {l_.grid.x / l_.cluster.x, l_.grid.y / l_.cluster.y,
                           l_.grid.z / l_.cluster.z};
    const auto x = uint32_t(number % clusters.x), y = uint32_t(number / clusters.x % clusters.y),
               z = uint32_t(number / clusters.x / clusters.y);
    cluster_.phase = 0;
    cluster_.number = uint32_t(number);
    for (Block& block : cluster_.blocks) {
      const uint32_t r = block.rank;
      block.id = {x * l_.cluster.x + r % l_.cluster.x,
                  y * l_.cluster.y + r / l_.cluster.x % l_.cluster.y,
                  z * l_.cluster.z + r / l_.cluster.x / l_.cluster.y};
      std::memset(block.shared, 0xff, kSharedBegin + block.shared_bytes);
      for (NamedBarrier& b : block.barriers) b = {};
      int64_t left = l_.block.count();
      for (size_t w = 0; w < block.warps.size(); ++w, left -= kLanes)
        block.warps[w].start(block, int(w), left >= kLanes ? kAll : (1u << left) - 1);
    }
    cluster_.run();
  }

 private:
  const Launch& l_;
  std::vector<uint32_t> registers_;
  std::vector<unsigned char> shared_;
  Cluster cluster_;
};

}  // namespace

int add_binary(const void* wrapper) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.wrappers.push_back(wrapper);
  return int(r.wrappers.size()) - 1;
}

void add_kernel(int binary, const void* stub, const char* name) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  Kernel kernel;
  kernel.binary = binary, kernel.name = name;
  r.kernels[stub] = std::move(kernel);
}

void add_variable(int, const void*, const char* name, size_t) {
  fault(std::string("variables of a module are not known to the emulator: ") + name);
}

Attributes attributes(const void* stub) {
  const Function& f = function_of(stub);
  Attributes a;
  a.threads = int(f.threads), a.shared = f.shared, a.local = f.local;
  a.registers = 32;
  for (const Variable& v : f.arguments) a.parameters.push_back(v.size);
  return a;
}

void launch(const Launch& l) {
  const Function& f = function_of(l.stub);
  std::vector<unsigned char> room;
  unsigned char* const parameters = aligned(room, f.parameters + 1, 128);
  for (size_t i = 0; i < f.arguments.size(); ++i)
    std::memcpy(parameters + f.arguments[i].offset, l.arguments[i], f.arguments[i].size);

  const LaunchOrder order = next_in_order(l.dependent);
  const int64_t clusters = l.grid.count() / l.cluster.count();
  static const auto cores = int64_t(std::max(1u, std::thread::hardware_concurrency()));
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    Worker worker(f, l, parameters, order);
    for (int64_t number; (number = next++) < clusters;) worker.run(number);
  };
  std::vector<std::thread> others;
  for (int64_t t = 1; t < std::min(cores, clusters); ++t) others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();
}

}  // namespace lrnn::emulator
