#include "kernels/cuda/tile/mma.cuh"
#include "tests/emulator/cases/case.h"

// Tensor cores and their fragments, the copy engine (TMA), clusters of blocks.
namespace lrnn::emulator::cases {
namespace {

using namespace kernels::cuda;

// ------------------------------------------------------------------------------------- matrices
// C += A B for A [16,16], B [16,8], lanes reading and writing as the manual draws fragments.
__global__ void multiply(const float* A, const float* B, float* C) {
  const int l = int(threadIdx.x), g = l / 4, c = l % 4 * 2;
  uint32_t a[4], b[2];
  float d[4];
  for (int r = 0; r < 4; ++r) {
    const float* const at = A + (g + r % 2 * 8) * 16 + c + r / 2 * 8;
    a[r] = pack(at[0], at[1]);
    d[r] = C[(g + r / 2 * 8) * 8 + c + r % 2];
  }
  for (int r = 0; r < 2; ++r) b[r] = pack(B[(c + r * 8) * 8 + g], B[(c + r * 8 + 1) * 8 + g]);
  mma(d, a, b[0], b[1]);
  for (int r = 0; r < 4; ++r) C[(g + r / 2 * 8) * 8 + c + r % 2] = d[r];
}
bool matrix_product() {
  Random random;
  std::vector<float> A(256), B(128), C(128);
  for (auto* const x : {&A, &B, &C})
    for (float& v : *x) v = float(random.below(17) - 8);
  const Array<float> a(A), b(B), c(C);
  multiply<<<1, 32>>>(a.data(), b.data(), c.data());
  for (size_t i = 0; i < 16; ++i)
    for (size_t j = 0; j < 8; ++j)
      for (size_t k = 0; k < 16; ++k) C[i * 8 + j] += A[i * 16 + k] * B[k * 8 + j];
  return same(c.values(), C);
}

// Four 8 x 8 matrices to fragments and back; rows lie 48 bytes apart, from a place of their own.
constexpr int kRow = 24;
enum Trip { kPlain, kLoadTransposed, kStoreTransposed, kBothTransposed, kInRegisters };
template <Trip kTrip> __global__ void round_trip(const uint16_t* in, uint16_t* out) {
  __shared__ __align__(16) uint16_t from[32 * kRow], to[32 * kRow];
  const int l = int(threadIdx.x);
  for (int i = 0; i < kRow; ++i) from[l * kRow + i] = in[l * kRow + i], to[l * kRow + i] = 0;
  __syncwarp();
  uint32_t r[4];
  const uint32_t at = shared_address(from + l * kRow), target = shared_address(to + l * kRow);
  if (kTrip == kLoadTransposed || kTrip == kBothTransposed)
    ldmatrix_transposed(r, at);
  else
    ldmatrix(r, at);
  if (kTrip == kInRegisters)
    for (uint32_t& x : r) asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;\n" : "+r"(x));
  if (kTrip == kStoreTransposed || kTrip == kBothTransposed)
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};\n" ::"r"(target),
        "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
        : "memory");
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};\n" ::"r"(target),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
  __syncwarp();
  for (int i = 0; i < kRow; ++i) out[l * kRow + i] = to[l * kRow + i];
}
template <Trip kTrip> bool trip() {
  const auto values = counting<uint16_t>(32 * kRow);
  const Array<uint16_t> in(values), out(values.size());
  round_trip<kTrip><<<1, 32>>>(in.data(), out.data());
  std::vector<uint16_t> wanted(values.size());
  const bool turned = kTrip != kPlain && kTrip != kBothTransposed;
  for (size_t m = 0; m < 4; ++m)
    for (size_t i = 0; i < 8; ++i)
      for (size_t j = 0; j < 8; ++j)
        wanted[(8 * m + i) * kRow + j] =
            values[turned ? (8 * m + j) * kRow + i : (8 * m + i) * kRow + j];
  return same(out.values(), wanted);
}
// Which lane has which value, and of one and two matrices.
__global__ void load_some(uint32_t* out, int shift) {
  __shared__ __align__(16) uint16_t m[128 + 8];
  const int l = int(threadIdx.x);
  for (int i = l; i < 128; i += 32) m[i] = uint16_t(i);
  __syncwarp();
  uint32_t one, two[2];
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];\n"
               : "=r"(one)
               : "r"(shared_address(m + l % 8 * 8 + shift)));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];\n"
               : "=r"(two[0]), "=r"(two[1])
               : "r"(shared_address(m + l % 16 * 8)));
  out[l] = one, out[32 + l] = two[0], out[64 + l] = two[1];
}
bool fragments(int shift) {
  const Array<uint32_t> out(96);
  load_some<<<1, 32>>>(out.data(), shift);
  std::vector<uint32_t> wanted(96);
  for (uint32_t i = 0; i < 96; ++i) {
    const uint32_t first = i % 32 / 4 * 8 + i % 4 * 2 + (i >= 64 ? 64 : 0);
    wanted[i] = first | (first + 1) << 16;
  }
  return same(out.values(), wanted);
}

// ----------------------------------------------------------------------------- the copy engine
__device__ __forceinline__ void init(uint32_t barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(count) : "memory");
}
__device__ __forceinline__ void expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void wait(uint32_t barrier, int parity) {
  uint32_t done;
  do {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (!done);
}
__device__ __forceinline__ void bring(uint32_t to, const void* from, int bytes, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];\n" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}
// 1024 bytes come, `expected` of them are waited for, and leave again, doubled.
struct Pass {
  int bytes, expected, shift;
  bool waits, sends_in_time;
};
__global__ void pass_through(const float* in, float* out, Pass how) {
  __shared__ __align__(128) float values[256];
  __shared__ uint64_t barrier;
  const uint32_t b = shared_address(&barrier), at = shared_address(values);
  const int t = int(threadIdx.x);
  values[t] = -1;
  if (t == 0) init(b, 1);
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
  __syncthreads();
  if (t == 0) {
    expect(b, how.expected);
    bring(at, reinterpret_cast<const char*>(in) + how.shift, how.bytes, b);
  }
  if (how.waits) wait(b, 0);
  const float x = values[t];
  if (!how.waits) wait(b, 0);
  values[t] = 2 * x;
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
  __syncthreads();
  if (t == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n" ::"l"(out),
                 "r"(at), "r"(how.bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");
    if (how.sends_in_time) asm volatile("cp.async.bulk.wait_group.read 0;\n" ::: "memory");
  }
  __syncthreads();
  values[t] = 7;  // once what was there has been sent
  __syncthreads();
}
bool passed(Pass how, float by = 2, float added = 0) {
  const Array<float> in(counting(256)), out(256);
  pass_through<<<1, 256>>>(in.data(), out.data(), how);
  auto wanted = counting(256);
  for (float& x : wanted) x = x * by + added;
  return same(out.values(), wanted);
}

// ------------------------------------------------------------------------------------- clusters
__device__ __forceinline__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;\n" ::: "memory");
}
// Each block reads what the next one of its cluster has; `rank` of a block that is not there is a
// mistake.
__global__ void read_next(float* out, int blocks) {
  __shared__ float values[32];
  uint32_t rank, theirs;
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
  values[threadIdx.x] = float(blockIdx.x * 100 + threadIdx.x);
  meet_cluster();
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n"
               : "=r"(theirs)
               : "r"(shared_address(&values[31 - threadIdx.x])),
                 "r"((rank + 1) % uint32_t(blocks)));
  float x;
  asm volatile("ld.shared::cluster.f32 %0, [%1];\n" : "=f"(x) : "r"(theirs) : "memory");
  meet_cluster();
  out[blockIdx.x * 32 + threadIdx.x] = x;
}
template <class... Parameters, class... Arguments>
void launch_cluster(void (*kernel)(Parameters...), unsigned blocks, unsigned cluster,
                    unsigned threads, Arguments... arguments) {
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {cluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks), config.blockDim = dim3(threads);
  config.attrs = &attribute, config.numAttrs = 1;
  require(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), "a cluster");
}
bool neighbours(int blocks) {
  const Array<float> out(128);
  launch_cluster(read_next, 4, 2, 32, out.data(), blocks);
  std::vector<float> wanted(128);
  for (size_t i = 0; i < 128; ++i) wanted[i] = float((i / 32 ^ 1) * 100 + 31 - i % 32);
  return same(out.values(), wanted);
}
// Those that arrive and end do not arrive for others, who are late.
__global__ void some_leave(float* out) {
  __shared__ float value;
  uint32_t rank, theirs;
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
  if (rank == 3) __syncthreads();  // so that its first warp waits for the second
  if (threadIdx.x == 0) value = 5;
  asm volatile("barrier.cluster.arrive.release.aligned;\n" ::: "memory");
  if (rank == 1 || rank == 2) return;
  asm volatile("barrier.cluster.wait.acquire.aligned;\n" ::: "memory");
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n"
               : "=r"(theirs)
               : "r"(shared_address(&value)), "r"(3));
  float x;
  asm volatile("ld.shared::cluster.f32 %0, [%1];\n" : "=f"(x) : "r"(theirs) : "memory");
  meet_cluster();
  if (rank == 0) out[threadIdx.x] = x;
}
bool leavers() {
  const Array<float> out(64);
  launch_cluster(some_leave, 4, 4, 64, out.data());
  return same(out.values(), std::vector<float>(64, 5));
}
// Block 0 has the copy engine fill block 1, at whose barrier the bytes count.
__global__ void fill_other(const float* in, float* out) {
  __shared__ __align__(128) float values[32];
  __shared__ uint64_t barrier;
  uint32_t rank, to, b = shared_address(&barrier);
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
  if (threadIdx.x == 0) init(b, 1), expect(b, 128);
  meet_cluster();
  if (rank == 0 && threadIdx.x == 0) {
    const uint32_t here = shared_address(values);
    asm volatile("mapa.shared::cluster.u32 %0, %1, 1;\n" : "=r"(to) : "r"(here));
    asm volatile("mapa.shared::cluster.u32 %0, %1, 1;\n" : "=r"(b) : "r"(b));
    bring(to, in, 128, b);
  }
  if (rank == 1) {
    wait(b, 0);
    out[threadIdx.x] = values[threadIdx.x];
  }
  meet_cluster();
}
bool filled_by_other() {
  const Array<float> in(counting(32)), out(32);
  launch_cluster(fill_other, 2, 2, 32, in.data(), out.data());
  return same(out.values(), counting(32));
}

}  // namespace

Cases hopper_cases() {
  return {
      {"matrix_product", "", matrix_product},
      {"matrix_trip", "", trip<kPlain>},
      {"matrix_load_transposed", "", trip<kLoadTransposed>},
      {"matrix_store_transposed", "", trip<kStoreTransposed>},
      {"matrix_both_transposed", "", trip<kBothTransposed>},
      {"matrix_in_registers", "", trip<kInRegisters>},
      {"matrix_fragments", "", [] { return fragments(0); }},
      {"matrix_misaligned", "16 bytes of shared memory at an address that is no multiple",
       [] { return fragments(1); }},
      {"bulk", "",
       [] {
         return passed({1024, 1024, 0, true, true});
       }},
      {"bulk_too_early", "",
       [] {
         return passed({1024, 1024, 0, false, true}, 0, -2);
       }},
      {"bulk_sent_too_late", "",
       [] {
         return passed({1024, 1024, 0, true, false}, 0, 7);
       }},
      {"bulk_expects_more", "threads wait for ever",
       [] {
         return passed({1024, 1040, 0, true, true});
       }},
      {"bulk_odd_bytes", "multiples of 16 bytes",
       [] {
         return passed({1000, 1000, 0, true, true});
       }},
      {"bulk_misaligned", "no multiple of that",
       [] {
         return passed({1008, 1008, 8, true, true});
       }},
      {"bulk_outside", "a bulk copy of 16 bytes outside all memory",
       [] {
         return passed({1024, 1024, 16, true, true});
       }},
      {"bulk_outside_shared", "shared memory is touched",
       [] {
         return passed({2048, 2048, 0, true, true});
       }},
      {"cluster", "", [] { return neighbours(2); }},
      {"cluster_of_three", "an address of a block that is not in the cluster",
       [] { return neighbours(3); }},
      {"cluster_some_leave", "", leavers},
      {"cluster_bulk", "", filled_by_other},
  };
}

}  // namespace lrnn::emulator::cases
