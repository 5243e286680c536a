#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

// A GPU that is not there: kernels' PTX, run on the CPU one warp after another. What a thread does
// is right to the instruction; how long it takes means nothing. `runtime/` puts this behind the
// names of the CUDA runtime, `torch/` gives LibTorch tensors on it.
namespace lrnn::emulator {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  int64_t count() const { return int64_t(x) * y * z; }
};

// What the compiler registers as a library is loaded: a fat binary (as __cudaRegisterFatBinary gets
// it), then its kernels, each by the address of its stub on the host, and its variables.
int add_binary(const void* wrapper);
void add_kernel(int binary, const void* stub, const char* name);
void add_variable(int binary, const void* shadow, const char* name, size_t size);

struct Launch {
  const void* stub = nullptr;  // of the kernel
  Dim3 grid, block, cluster;
  size_t shared = 0;           // dynamic, bytes
  void** arguments = nullptr;  // each points to its value
  bool dependent = false;      // may begin before the kernel before has ended
};
// Runs the whole grid and returns when it has ended. A fault (an address outside, a trap, threads
// that wait for ever, PTX that is not known) ends the program with the kernel, the thread and the
// line of PTX.
void launch(const Launch& launch);

// The memory of this device is memory of the host: what kernels may touch is what was taken here.
// Filled with bytes 0xff (NaN), so that values nobody wrote show.
void* take(size_t bytes);
void give_back(void* memory);

struct Attributes {
  int registers = 0, threads = 1024;
  size_t shared = 0, local = 0;         // static shared memory, local memory of a thread
  std::vector<size_t> parameters = {};  // the bytes of each argument
};
Attributes attributes(const void* stub);

}  // namespace lrnn::emulator
