#include <cmath>

#include "tests/emulator/cases/case.h"

// Addresses, memory that nobody wrote, and launches.
namespace lrnn::emulator::cases {
namespace {

// ------------------------------------------------------------------------------- global memory
__global__ void count_up(float* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = float(blockIdx.x * blockDim.x + threadIdx.x);
}
bool count_into(size_t count) {
  const Array<float> out(count);
  count_up<<<2, 64>>>(out.data());
  return same(out.values(), counting(count));
}

__global__ void add_last(const float* in, float* out, int count) {
  out[threadIdx.x] = in[threadIdx.x] + in[count - 1];
}
bool add_value(int last) {
  const Array<float> in(counting(33)), out(32);
  add_last<<<1, 32>>>(in.data(), out.data(), last);
  auto wanted = counting(32);
  for (float& x : wanted) x += float(last - 1);
  return same(out.values(), wanted);
}

__global__ void write_byte(char* out, int at) {
  if (threadIdx.x == 7) out[at] = 1;
}
bool write_one_byte(int at) {
  const Array<char> out(std::vector<char>(100));
  write_byte<<<1, 32>>>(out.data(), at);
  std::vector<char> wanted(100);
  wanted[size_t(at)] = 1;
  return same(out.values(), wanted);
}

__global__ void copy_fours(const float* in, float4* out, int first) {
  out[threadIdx.x] = reinterpret_cast<const float4*>(in + first)[threadIdx.x];
}
bool copy_from(int first) {
  const Array<float> in(counting(256));
  const Array<float4> out(32);
  copy_fours<<<1, 32>>>(in.data(), out.data(), first);
  const auto got = out.values();
  for (int i = 0; i < 32; ++i)
    if (got[size_t(i)].x != float(first + 4 * i) || got[size_t(i)].w != float(first + 4 * i + 3))
      return false;
  return true;
}

bool after_free() {
  float* memory = nullptr;
  require(cudaMalloc(&memory, 128 * sizeof(float)), "cudaMalloc");
  cudaFree(memory);
  count_up<<<2, 64>>>(memory);
  return false;
}
bool of_the_host() {
  std::vector<float> memory(128);
  count_up<<<2, 64>>>(memory.data());
  return false;
}
// Copies by the runtime know where memory ends, too.
bool copy_past_end() {
  const Array<float> out(128);
  const std::vector<float> in(129);
  return cudaMemcpy(out.data(), in.data(), 129 * sizeof(float), cudaMemcpyDefault) ==
             cudaErrorInvalidValue &&
         cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess;
}

// ------------------------------------------------------------------------------- shared memory
__global__ void through_shared(float* out, int shift) {
  extern __shared__ float values[];
  values[threadIdx.x + shift] = float(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = values[63 - threadIdx.x + shift];
}
bool reverse(int shift) {
  const Array<float> out(64);
  through_shared<<<1, 64, 256>>>(out.data(), shift);
  auto wanted = counting(64);
  for (size_t i = 0; i < 64; ++i) wanted[i] = float(63 - i);
  return same(out.values(), wanted);
}
// By an address that does not say which memory it is of.
__global__ void through_pointer(float* out, int from) {
  __shared__ float values[64];
  float* const either = from < 0 ? out : values;
  values[threadIdx.x] = float(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = *reinterpret_cast<volatile float*>(either + (threadIdx.x + from) % 96);
}
bool rotate(int from) {
  const Array<float> out(64);
  through_pointer<<<1, 64>>>(out.data(), from);
  return same(out.values(), counting(64));
}

// --------------------------------------------------------------------------- nobody wrote there
__global__ void read_shared(float* out) {
  extern __shared__ float values[];
  if (threadIdx.x > 0) values[threadIdx.x] = 1;
  __syncthreads();
  out[blockIdx.x * 32 + threadIdx.x] = reinterpret_cast<volatile float*>(values)[threadIdx.x];
}
bool fresh_shared() {  // of every block, though blocks run where others did
  const Array<float> out(128);
  for (int turn = 0; turn < 2; ++turn) {
    read_shared<<<4, 32, 128>>>(out.data());
    const auto got = out.values();
    for (size_t i = 0; i < 128; ++i)
      if (i % 32 ? got[i] != 1 : !std::isnan(got[i])) return false;
  }
  return true;
}
__global__ void add_one(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x] + 1; }
__global__ void widen(const uint16_t* in, float* out) {
  out[threadIdx.x] = __uint_as_float(uint32_t(in[threadIdx.x]) << 16);
}
template <class T, class Kernel> bool gives_nan(Kernel* kernel) {
  const Array<T> in(32);
  const Array<float> out(std::vector<float>(32));
  kernel<<<1, 32>>>(in.data(), out.data());
  for (const float x : out.values())
    if (!std::isnan(x)) return false;
  return true;
}
__global__ void index_local(const int* at, float* out) {
  float mine[40];
  for (int i = 0; i < 40; ++i)
    if (i != 17) mine[at[i]] = float(i * 100 + threadIdx.x);
  out[threadIdx.x] = reinterpret_cast<volatile float*>(mine)[at[16 + threadIdx.x % 2]];
}
bool fresh_local() {
  const Array<int> at(counting<int>(40));
  const Array<float> out(32);
  index_local<<<1, 32>>>(at.data(), out.data());
  const auto got = out.values();
  for (size_t i = 0; i < 32; ++i)
    if (i % 2 ? !std::isnan(got[i]) : got[i] != float(1600 + i)) return false;
  return true;
}

// ------------------------------------------------------------------------------------- launches
__global__ void stop_at(int thread) {
  if (int(threadIdx.x) == thread) __trap();
}
bool stopped(int thread) {
  stop_at<<<1, 64>>>(thread);
  return cudaDeviceSynchronize() == cudaSuccess;
}

__global__ void of_dynamic_shared(float* out) {
  extern __shared__ float values[];
  values[16000 + threadIdx.x] = 1;
  out[threadIdx.x] = values[16000 + threadIdx.x];
}
constexpr size_t kMuch = 64 * 1024;
bool refused_shared() {
  const Array<float> out(std::vector<float>(32));
  of_dynamic_shared<<<1, 32, kMuch>>>(out.data());
  return cudaGetLastError() == cudaErrorInvalidValue &&
         same(out.values(), std::vector<float>(32));  // it did not run
}
bool allowed_shared() {
  const Array<float> out(32);
  constexpr auto kWhich = cudaFuncAttributeMaxDynamicSharedMemorySize;
  const bool too_much =
      cudaFuncSetAttribute(of_dynamic_shared, kWhich, 228 * 1024) == cudaErrorInvalidValue;
  cudaGetLastError();
  require(cudaFuncSetAttribute(of_dynamic_shared, kWhich, int(kMuch)), "cudaFuncSetAttribute");
  of_dynamic_shared<<<1, 32, kMuch>>>(out.data());
  return too_much && same(out.values(), std::vector<float>(32, 1));
}
__global__ void __launch_bounds__(64) of_few_threads(float* out) { out[threadIdx.x] = 1; }
bool refused_threads() {
  const Array<float> out(std::vector<float>(2048));
  of_few_threads<<<1, 128>>>(out.data());
  const bool bounded = cudaGetLastError() != cudaSuccess;
  count_up<<<1, 2048>>>(out.data());
  const bool most = cudaGetLastError() == cudaErrorInvalidConfiguration;
  count_up<<<0, 32>>>(out.data());
  return bounded && most && cudaGetLastError() == cudaErrorInvalidConfiguration &&
         same(out.values(), std::vector<float>(2048));
}

}  // namespace

Cases memory_cases() {
  return {
      {"store", "", [] { return count_into(128); }},
      {"store_outside", "block (1, 0, 0), thread 63, line * a store of 4 bytes outside all memory",
       [] { return count_into(127); }},
      {"load", "", [] { return add_value(33); }},
      {"load_outside", "thread 0, line * a load of 4 bytes outside all memory",
       [] { return add_value(34); }},
      {"load_before", "a load of 4 bytes outside all memory", [] { return add_value(0); }},
      {"byte", "", [] { return write_one_byte(99); }},
      {"byte_outside", "thread 7, line * a store of 1 bytes outside all memory",
       [] { return write_one_byte(100); }},
      {"fours", "", [] { return copy_from(8); }},
      {"fours_misaligned", "thread 0, line * a load of 16 bytes at an address that is no multiple",
       [] { return copy_from(2); }},
      {"store_after_free", "outside all memory", after_free},
      {"store_to_host", "outside all memory", of_the_host},
      {"copy_past_end", "", copy_past_end},
      {"shared", "", [] { return reverse(0); }},
      {"shared_outside", "thread 63, line * shared memory is touched at 256, 4 bytes, of 256",
       [] { return reverse(1); }},
      {"shared_before", "shared memory is touched at -4, 4 bytes", [] { return reverse(-1); }},
      {"shared_pointer", "", [] { return rotate(0); }},
      {"shared_pointer_outside", "thread 63, line * a load of 4 bytes outside all memory",
       [] { return rotate(1); }},
      {"fresh_shared", "", fresh_shared},
      {"fresh_global", "", [] { return gives_nan<float>(add_one); }},
      {"fresh_bfloat16", "", [] { return gives_nan<uint16_t>(widen); }},
      {"fresh_local", "", fresh_local},
      {"no_trap", "", [] { return stopped(64); }},
      {"trap", "thread 40, line * a trap", [] { return stopped(40); }},
      {"refused_shared", "", refused_shared},
      {"allowed_shared", "", allowed_shared},
      {"refused_threads", "", refused_threads},
  };
}

}  // namespace lrnn::emulator::cases
