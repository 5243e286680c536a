#include "kernels/cuda/tile/mma.cuh"
#include "tests/emulator/cases/case.h"

// Barriers of a block and in shared memory: that they open, and that those nobody opens are told.
namespace lrnn::emulator::cases {
namespace {

using kernels::cuda::shared_address;

// Warp 0 makes what warp 1 takes, kTurns times in the same place. `arrives`: warps that come to the
// barrier of what was made.
__global__ void hand_over(int* out, int turns, int arrives) {
  __shared__ int values[32];
  const int l = int(threadIdx.x) % 32;
  for (int i = 0; i < turns; ++i)
    if (threadIdx.x < 32) {
      values[l] = i * 100 + l;
      if (arrives == 2 || i == 0) asm volatile("barrier.sync 1, 64;\n" ::: "memory");
      asm volatile("barrier.sync 2, 64;\n" ::: "memory");
    } else if (threadIdx.x < 64) {
      asm volatile("barrier.sync 1, 64;\n" ::: "memory");
      out[i * 32 + l] = values[31 - l];
      asm volatile("barrier.arrive 2, 64;\n" ::: "memory");
    }
}
bool handed_over(int arrives) {
  const Array<int> out(96);
  hand_over<<<1, 96>>>(out.data(), 3, arrives);
  std::vector<int> wanted(96);
  for (int i = 0; i < 96; ++i) wanted[size_t(i)] = i / 32 * 100 + 31 - i % 32;
  return same(out.values(), wanted);
}

// Only one of two warps comes; the other has ended, which a barrier of a number does not know.
__global__ void warps_meet(int warps) {
  if (int(threadIdx.x) / 32 < warps) asm volatile("barrier.sync 3, 64;\n" ::: "memory");
}
bool met(int warps) {
  warps_meet<<<1, 64>>>(warps);
  return cudaDeviceSynchronize() == cudaSuccess;
}
__global__ void two_numbers(int other) {
  if (threadIdx.x < 32)
    asm volatile("barrier.sync 3, 64;\n" ::: "memory");
  else
    asm volatile("barrier.sync 3, %0;\n" ::"r"(other) : "memory");
}
bool numbers(int other) {
  two_numbers<<<1, 64>>>(other);
  return cudaDeviceSynchronize() == cudaSuccess;
}

// mbarrier: opens when `count` have arrived.
__device__ __forceinline__ void init(uint64_t* b, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(shared_address(b)), "r"(count)
               : "memory");
}
__device__ __forceinline__ void arrive(uint64_t* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(shared_address(b)) : "memory");
}
__device__ __forceinline__ void wait(uint64_t* b, int parity) {
  uint32_t done;
  do {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}\n"
        : "=r"(done)
        : "r"(shared_address(b)), "r"(parity)
        : "memory");
  } while (!done);
}
// Warp 0 fills two places in turn, warp 1 reads and frees them: `turns` phases of four barriers.
__global__ void ring(int* out, int turns, int count) {
  __shared__ int values[2][32];
  __shared__ uint64_t filled[2], freed[2];
  if (threadIdx.x < 2) init(&filled[threadIdx.x], count), init(&freed[threadIdx.x], 32);
  __syncthreads();
  const int l = int(threadIdx.x) % 32;
  for (int i = 0; i < turns; ++i) {
    const int slot = i % 2, parity = i / 2 % 2;
    if (threadIdx.x < 32) {
      wait(&freed[slot], parity ^ 1);
      values[slot][l] = i * 100 + l;
      arrive(&filled[slot]);
    } else {
      wait(&filled[slot], parity);
      out[i * 32 + l] = values[slot][31 - l];
      arrive(&freed[slot]);
    }
  }
}
bool ring_of(int count) {
  const Array<int> out(7 * 32);
  ring<<<1, 64>>>(out.data(), 7, count);
  std::vector<int> wanted(7 * 32);
  for (int i = 0; i < 7 * 32; ++i) wanted[size_t(i)] = i / 32 * 100 + 31 - i % 32;
  return same(out.values(), wanted);
}
__global__ void no_init(int initialise) {
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0 && initialise) init(&barrier, 32);
  __syncthreads();
  arrive(&barrier);
}
bool initialised(int initialise) {
  no_init<<<1, 32>>>(initialise);
  return cudaDeviceSynchronize() == cudaSuccess;
}

}  // namespace

Cases barrier_cases() {
  return {
      {"barriers", "", [] { return handed_over(2); }},
      {"barrier_missed", "threads wait for ever*at barrier 2*at barrier 1",
       [] { return handed_over(1); }},
      {"barrier_of_all", "", [] { return met(2); }},
      {"barrier_of_one", "threads wait for ever*thread 0 at line *, at barrier 3",
       [] { return met(1); }},
      {"barrier_of_two_numbers", "thread 32, line * barrier 3 is met with two numbers",
       [] { return numbers(96); }},
      {"mbarriers", "", [] { return ring_of(32); }},
      {"mbarrier_never_opens", "threads wait for ever", [] { return ring_of(33); }},
      {"mbarrier_initialised", "", [] { return initialised(1); }},
      {"mbarrier_not_initialised", "a barrier that was not initialised",
       [] { return initialised(0); }},
  };
}

}  // namespace lrnn::emulator::cases
