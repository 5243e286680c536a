#include "kernels/cuda/tile/mma.cuh"
#include "tests/emulator/cases/case.h"

// cp.async: what was copied is there once it has been waited for, and not before.
namespace lrnn::emulator::cases {
namespace {

using kernels::cuda::shared_address;

__device__ __forceinline__ void start_copy(float4* to, const float4* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int kLeft> __device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kLeft) : "memory");
}

// Two groups, a value of each lane in each; kLeft of them are not waited for, or 2 with an open
// group: a copy that was not committed.
template <int kLeft, bool kCommit> __global__ void two_groups(const float4* in, float4* out) {
  __shared__ float4 values[2][32];
  const unsigned l = threadIdx.x;
  values[0][l] = values[1][l] = make_float4(-1, -1, -1, -1);
  __syncthreads();
  start_copy(&values[0][l], in + l);
  commit();
  start_copy(&values[1][l], in + 32 + l);
  if (kCommit) commit();
  wait<kLeft>();
  out[l] = values[0][l], out[32 + l] = values[1][l];
  wait<0>();
}
template <int kLeft, bool kCommit = true> bool two_copies(bool first_is_new, bool second_is_new) {
  const Array<float> in(counting(256)), out(256);
  two_groups<kLeft, kCommit>
      <<<1, 32>>>(reinterpret_cast<float4*>(in.data()), reinterpret_cast<float4*>(out.data()));
  auto wanted = counting(256);
  for (size_t i = 0; i < 256; ++i)
    if (!(i < 128 ? first_is_new : second_is_new)) wanted[i] = -1;
  return same(out.values(), wanted);
}

// A barrier is no wait: each lane reads what another one copies.
template <bool kWait> __global__ void other_lanes(const float4* in, float4* out) {
  __shared__ float4 values[64];
  const unsigned t = threadIdx.x;
  values[t] = make_float4(-1, -1, -1, -1);
  start_copy(&values[t], in + t);
  if (kWait) asm volatile("cp.async.wait_all;\n" ::: "memory");
  __syncthreads();
  out[t] = values[63 - t];
}
template <bool kWait> bool reversed_copy() {
  const Array<float> in(counting(256)), out(256);
  other_lanes<kWait>
      <<<1, 64>>>(reinterpret_cast<float4*>(in.data()), reinterpret_cast<float4*>(out.data()));
  std::vector<float> wanted(256, -1);
  for (size_t i = 0; kWait && i < 256; ++i) wanted[i] = float((63 - i / 4) * 4 + i % 4);
  return same(out.values(), wanted);
}

// What lies behind the bytes that are there becomes 0.
template <int kBytes>
__global__ void part_of_copy(const char* in, char* out, int bytes, int shift) {
  __shared__ __align__(16) char values[32][16];
  const unsigned l = threadIdx.x;
  for (int i = 0; i < 16; ++i) values[l][i] = -1;
  if (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(values[l])),
                 "l"(in + l * 16 + shift), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;\n" ::"r"(shared_address(values[l])),
                 "l"(in + l * 16 + shift), "n"(kBytes), "r"(bytes)
                 : "memory");
  commit();
  wait<0>();
  for (int i = 0; i < 16; ++i) out[l * 16 + i] = values[l][i];
}
template <int kBytes> bool partial(int bytes, int shift = 0) {
  const Array<char> in(std::vector<char>(512, 3)), out(512);
  part_of_copy<kBytes><<<1, 32>>>(in.data(), out.data(), bytes, shift);
  std::vector<char> wanted(512);
  for (int i = 0; i < 512; ++i)
    wanted[size_t(i)] = char(i % 16 < bytes ? 3 : i % 16 < kBytes ? 0 : -1);
  return same(out.values(), wanted);
}

}  // namespace

Cases copy_cases() {
  return {
      {"copies", "", [] { return two_copies<0>(true, true); }},
      {"copy_waits_for_one", "", [] { return two_copies<1>(true, false); }},
      {"copy_waits_for_none", "", [] { return two_copies<2>(false, false); }},
      {"copy_not_committed", "", [] { return two_copies<0, false>(true, false); }},
      {"copy_of_other_lanes", "", reversed_copy<true>},
      {"copy_behind_barrier", "", reversed_copy<false>},
      {"copy_of_none", "", [] { return partial<16>(0); }},
      {"copy_of_8", "", [] { return partial<16>(8); }},
      {"copy_of_6", "", [] { return partial<16>(6); }},
      {"copy_of_4_small", "", [] { return partial<8>(4); }},
      {"copy_misaligned", "no multiple of that", [] { return partial<16>(16, 8); }},
      {"copy_misaligned_part", "no multiple of that", [] { return partial<16>(8, 8); }},
      {"copy_outside", "thread 31, line * a copy of 16 bytes outside all memory",
       [] { return partial<16>(16, 16); }},
  };
}

}  // namespace lrnn::emulator::cases
