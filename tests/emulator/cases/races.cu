#include "tests/emulator/cases/case.h"

// Races: what is right only in some orders. Each has a twin that waits.
namespace lrnn::emulator::cases {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32;

// A warp reads what another wrote.
template <bool kWaits> __global__ void neighbours(float* out) {
  __shared__ float values[kThreads];
  values[threadIdx.x] = float(threadIdx.x);
  if (kWaits) __syncthreads();
  out[threadIdx.x] = values[(threadIdx.x + 32) % kThreads];
}
template <bool kWaits> bool neighbours_agree() {
  const Array<float> out(kThreads);
  neighbours<kWaits><<<1, kThreads>>>(out.data());
  const auto got = out.values();
  for (int i = 0; i < kThreads; ++i)
    if (got[size_t(i)] != float((i + 32) % kThreads)) return false;
  return true;
}

// The first warp adds up what all have left, while the others are at the next round.
template <int kBuffers> __global__ void rounds(float* out) {
  __shared__ float sums[kBuffers][kWarps];
  for (int round = 0; round < 4; ++round) {
    if (threadIdx.x % 32 == 0) sums[round % kBuffers][threadIdx.x / 32] = float(round);
    __syncthreads();
    if (threadIdx.x == 0) {
      float sum = 0;
      for (int w = 0; w < kWarps; ++w) sum += sums[round % kBuffers][w];
      out[round] = sum;
    }
  }
}
template <int kBuffers> bool rounds_are_added() {
  const Array<float> out(4);
  rounds<kBuffers><<<1, kThreads>>>(out.data());
  return same(out.values(), std::vector<float>{0, 4, 8, 12});
}

// A copy into what others may still read.
template <bool kWaits> __global__ void reused(const float* in, float* out) {
  __shared__ __align__(16) float values[kThreads];
  values[threadIdx.x] = 1;
  __syncthreads();
  const float before = values[(threadIdx.x + 32) % kThreads];
  if (kWaits) __syncthreads();
  if (threadIdx.x < 32) {
    const auto to = uint32_t(__cvta_generic_to_shared(values + 4 * threadIdx.x));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to),
                 "l"(in + 4 * threadIdx.x));
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;\n" ::: "memory");
  }
  __syncthreads();
  out[threadIdx.x] = before + values[threadIdx.x];
}
template <bool kWaits> bool reused_late() {
  const Array<float> in(std::vector<float>(kThreads, 2.f)), out(kThreads);
  reused<kWaits><<<1, kThreads>>>(in.data(), out.data());
  return same(out.values(), std::vector<float>(kThreads, 3.f));
}

// The copy engine sends what threads wrote.
template <bool kFence> __global__ void sent(float* out) {
  __shared__ __align__(16) float values[kThreads];
  values[threadIdx.x] = 5;
  if (kFence) asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
  __syncthreads();
  if (threadIdx.x > 0) return;
  const auto from = uint32_t(__cvta_generic_to_shared(values));
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n" ::"l"(out),
               "r"(from), "n"(sizeof values)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\n" ::: "memory");
}
template <bool kFence> bool sent_after_fence() {
  const Array<float> out(kThreads);
  sent<kFence><<<1, kThreads>>>(out.data());
  return same(out.values(), std::vector<float>(kThreads, 5.f));
}

// Blocks that write to one place, and one that reads what another writes.
__global__ void from_blocks(float* out, int apart, int ahead) {
  float* const mine = out + blockIdx.x * apart;
  const float x = ahead > 0 ? out[(blockIdx.x + ahead) % gridDim.x * apart] : 0.f;
  *mine = 1 + 0 * x;
}
bool blocks_write(int apart, int ahead) {
  const Array<float> out(std::vector<float>(8));
  from_blocks<<<2, 1>>>(out.data(), apart, ahead);
  const auto got = out.values();
  return got[0] == 1 && got[size_t(apart)] == 1;
}

// A kernel that may begin before the one before has ended.
__global__ void before(float* x) { x[threadIdx.x] = 7; }
template <bool kWaits> __global__ void after(const float* x, float* out) {
  if (kWaits) asm volatile("griddepcontrol.wait;\n" ::: "memory");
  const float mine = x[threadIdx.x];
  asm volatile("griddepcontrol.wait;\n" ::: "memory");
  out[threadIdx.x] = mine;
}
template <bool kWaits> bool one_after_the_other() {
  const Array<float> x(32), out(32);
  before<<<1, 32>>>(x.data());
  cudaLaunchAttribute early;
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1), config.blockDim = dim3(32), config.attrs = &early, config.numAttrs = 1;
  cudaLaunchKernelEx(&config, after<kWaits>, static_cast<const float*>(x.data()), out.data());
  return same(out.values(), std::vector<float>(32, 7.f));
}

}  // namespace

Cases race_cases() {
  return {
      {"race_no_neighbours", "", neighbours_agree<true>},
      {"race_neighbours", "a race in shared memory", neighbours_agree<false>},
      {"race_no_rounds", "", rounds_are_added<2>},
      {"race_rounds", "a race in shared memory*warp 0", rounds_are_added<1>},
      {"race_no_copy", "", reused_late<true>},
      {"race_copy", "a race in shared memory*reads what was there", reused_late<false>},
      {"race_no_fence", "", sent_after_fence<true>},
      {"race_fence", "a bulk store of warp 0*without a fence.proxy.async", sent_after_fence<false>},
      {"race_no_blocks", "", [] { return blocks_write(4, 0); }},
      {"race_blocks", "two blocks use it, and one writes", [] { return blocks_write(0, 0); }},
      {"race_block_reads", "a race in memory", [] { return blocks_write(4, 1); }},
      {"race_no_launch", "", one_after_the_other<true>},
      {"race_launch", "read before griddepcontrol.wait", one_after_the_other<false>},
  };
}

}  // namespace lrnn::emulator::cases
