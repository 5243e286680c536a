#include "tests/emulator/cases/case.h"

// Lanes of a warp that go apart, meet again and give each other values; beside the same on the
// host, lane by lane.
namespace lrnn::emulator::cases {
namespace {

constexpr uint32_t kAll = 0xffffffffu;

// Loops that end after another number of turns in every lane, by `break`, `continue` and `return`.
__host__ __device__ int wander(int lane, const int* steps) {
  int x = lane;
  for (int turn = 0; turn < 5 + lane % 7; ++turn) {
    const int step = steps[(turn * 5 + lane) % 64];
    if (step % 3 == 0) continue;
    if (x > 4000) {
      if (lane % 2) break;
      x -= 3000;
      for (int i = 0; i < step % 4; ++i) {
        if (i == lane % 5) break;
        x += i * lane;
      }
    } else if (step % 5 == 1) {
      while (x % 4 != lane % 4) ++x;
    } else {
      x = x * 3 + step;
    }
    switch (x % 6) {
      case 0: x += 1; break;
      case 1: x ^= 5; [[fallthrough]];
      case 2: x += lane; break;
      case 4:
        if (lane == 13) return -x;
        break;
      default: x += turn;
    }
  }
  return x;
}

struct Gathered {
  int alone[32], from_index[32], from_up[32], from_down[32], from_xor[32], in_eights[32];
  uint32_t odd[32], any[32], every[32], inside[32];
};
// Whether the lane that was asked for is there, as __shfl_up_sync and the others do not tell.
__device__ __forceinline__ uint32_t is_inside(int x) {
  uint32_t up, down;
  asm volatile(
      "{\n.reg .pred p, q;\n.reg .b32 r;\nshfl.sync.up.b32 r|p, %2, 3, 0, -1;\n"
      "shfl.sync.down.b32 r|q, %2, 2, 0x181f, -1;\n"  // in eights
      "selp.u32 %0, 1, 0, p;\nselp.u32 %1, 2, 0, q;\n}\n"
      : "=r"(up), "=r"(down)
      : "r"(x));
  return up + down;
}
__global__ void gather(const int* steps, Gathered* out) {
  const int l = int(threadIdx.x);
  const int x = wander(l, steps);
  out->alone[l] = x;
  out->from_index[l] = __shfl_sync(kAll, x, l * 7 + 3);
  out->from_up[l] = __shfl_up_sync(kAll, x, 3);
  out->from_down[l] = __shfl_down_sync(kAll, x, 5);
  out->from_xor[l] = __shfl_xor_sync(kAll, x, 9);
  out->in_eights[l] = __shfl_down_sync(kAll, x, 3, 8) + __shfl_up_sync(kAll, x, 1, 8) * 3 +
                      __shfl_sync(kAll, x, 11, 8) * 5 + __shfl_xor_sync(kAll, x, 6, 8) * 7;
  out->inside[l] = is_inside(x);
  out->odd[l] = __ballot_sync(kAll, x & 1);
  out->any[l] = __any_sync(kAll, x < 0) + 2u * __any_sync(kAll, x == -1);
  out->every[l] = __all_sync(kAll, x != -1) + 2u * __all_sync(kAll, x & 1);
}
bool lanes_meet() {
  Random random;
  std::vector<int> steps(64);
  for (int& s : steps) s = random.below(100);
  const Array<int> of(steps);
  const Array<Gathered> out(1);
  gather<<<1, 32>>>(of.data(), out.data());
  const Gathered got = out.values()[0];
  int x[32];
  uint32_t odd = 0;
  bool negative = false, minus_one = false;
  for (int l = 0; l < 32; ++l) {
    x[l] = wander(l, steps.data());
    odd |= uint32_t(x[l] & 1) << l;
    negative = negative || x[l] < 0, minus_one = minus_one || x[l] == -1;
  }
  bool right = true;
  for (int l = 0; l < 32; ++l) {
    const int first = l / 8 * 8;  // of its eight
    const int eights = (l % 8 + 3 < 8 ? x[l + 3] : x[l]) + (l % 8 > 0 ? x[l - 1] : x[l]) * 3 +
                       x[first + 3] * 5 + x[l ^ 6] * 7;
    const bool here =
        got.alone[l] == x[l] && got.from_index[l] == x[(l * 7 + 3) % 32] &&
        got.from_up[l] == x[l < 3 ? l : l - 3] && got.from_down[l] == x[l + 5 < 32 ? l + 5 : l] &&
        got.from_xor[l] == x[l ^ 9] && got.in_eights[l] == eights && got.odd[l] == odd &&
        got.inside[l] == (l >= 3) + 2u * (l % 8 + 2 < 8) &&
        got.any[l] == negative + 2u * minus_one && got.every[l] == !minus_one + 2u * (odd == kAll);
    if (!here) std::printf("lane %d is wrong\n", l);
    right = right && here;
  }
  return right;
}

// Some lanes among themselves, on both sides of a branch; at the end of it each side waits.
__global__ void both_sides(const int* in, int* out) {
  const int l = int(threadIdx.x);
  int x = in[l];
  if (l % 3 == 0) {
    x = __shfl_sync(0x49249249u, x, (l + 3) % 33) * 2;
  } else {
    x += int(__ballot_sync(~0x49249249u, x % 2));
    __syncwarp(~0x49249249u);
  }
  __syncwarp();
  out[l] = x;
}
bool sides() {
  std::vector<int> in(32), wanted(32);
  Random random;
  for (int& x : in) x = random.below(1000);
  int odd = 0;
  for (int l = 0; l < 32; ++l)
    if (l % 3) odd |= (in[size_t(l)] % 2) << l;
  for (int l = 0; l < 32; ++l)
    wanted[size_t(l)] = l % 3 ? in[size_t(l)] + odd : in[size_t((l + 3) % 33)] * 2;
  const Array<int> from(in), out(32);
  both_sides<<<1, 32>>>(from.data(), out.data());
  return same(out.values(), wanted);
}

// The same statement by two groups at once, each with a mask of its own.
__global__ void own_masks(const int* in, uint32_t* out) {
  const uint32_t mine = threadIdx.x < 16 ? 0xffffu : 0xffff0000u;
  const int x = in[threadIdx.x];
  out[threadIdx.x] =
      __ballot_sync(mine, x > 0) + __any_sync(mine, x > 8) + uint32_t(__shfl_xor_sync(mine, x, 3));
}
bool groups() {
  std::vector<int> in(32);
  for (int l = 0; l < 32; ++l) in[size_t(l)] = l * 5 % 17 - (l < 16 ? 8 : 0);
  std::vector<uint32_t> wanted(32);
  for (size_t l = 0; l < 32; ++l) {
    uint32_t positive = 0, large = 0;
    for (size_t k = l / 16 * 16; k < l / 16 * 16 + 16; ++k)
      positive |= uint32_t(in[k] > 0) << k, large |= in[k] > 8;
    wanted[l] = positive + large + uint32_t(in[l ^ 3]);
  }
  const Array<int> from(in);
  const Array<uint32_t> out(32);
  own_masks<<<1, 32>>>(from.data(), out.data());
  return same(out.values(), wanted);
}

// Lanes that end early; the others go on, and barriers do not wait for them.
__global__ void some_end(int* out) {
  __shared__ int values[96];
  const int t = int(threadIdx.x);
  values[t] = t;
  if (t % 5 == 4) return;
  __syncthreads();
  const uint32_t here = __ballot_sync(__activemask(), 1);
  out[t] = values[(t + 1) % 96] + __popc(here);
}
bool early_ends() {  // 80 threads: a warp of 16
  const Array<int> out(std::vector<int>(96));
  some_end<<<1, 96>>>(out.data());
  std::vector<int> wanted(96);
  for (int t = 0; t < 96; ++t) {
    int here = 0;
    for (int k = t / 32 * 32; k < t / 32 * 32 + 32; ++k) here += k % 5 != 4;
    if (t % 5 != 4) wanted[size_t(t)] = (t + 1) % 96 + here;
  }
  return same(out.values(), wanted);
}
__global__ void narrow_block(int* out) {
  __shared__ int values[80];
  const int t = int(threadIdx.x + threadIdx.y * blockDim.x);
  values[t] = int(threadIdx.y) * 100 + int(threadIdx.x);
  __syncthreads();
  out[t] = values[79 - t];
}
bool part_of_warp() {
  const Array<int> out(80);
  narrow_block<<<1, dim3(16, 5)>>>(out.data());
  std::vector<int> wanted(80);
  for (int t = 0; t < 80; ++t) wanted[size_t(t)] = (79 - t) / 16 * 100 + (79 - t) % 16;
  return same(out.values(), wanted);
}

// Atomics: by lanes that went apart, in both memories.
__global__ void add_up(int* sum, unsigned* most, float* floats, int* swapped) {
  __shared__ int local;
  if (threadIdx.x == 0) local = 0;
  __syncthreads();
  if (threadIdx.x % 3) atomicAdd(&local, int(threadIdx.x));
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(sum, local);
  atomicMax(most, threadIdx.x * 7 % 64);
  atomicAdd(floats, 0.5f);
  atomicCAS(swapped, 0, 1);
}
bool atomics() {
  const Array<int> sum(std::vector<int>(1)), swapped(std::vector<int>(1));
  const Array<unsigned> most(std::vector<unsigned>(1));
  const Array<float> floats(std::vector<float>(1));
  add_up<<<5, 64>>>(sum.data(), most.data(), floats.data(), swapped.data());
  int wanted = 0;
  for (int t = 0; t < 64; ++t) wanted += t % 3 ? t : 0;
  return sum.values()[0] == 5 * wanted && most.values()[0] == 63 && floats.values()[0] == 160 &&
         swapped.values()[0] == 1;
}

// Half of a warp waits for the other, which waits at a barrier.
__global__ void apart(int* out, int first) {
  int x = int(threadIdx.x);
  if (x >= first) x = __shfl_sync(kAll, x, 0);
  __syncthreads();
  out[threadIdx.x] = x;
}
bool lanes_apart(int first) {
  const Array<int> out(32);
  apart<<<1, 32>>>(out.data(), first);
  return same(out.values(), std::vector<int>(32));
}
__global__ void of_others(int* out, int first) {
  if (int(threadIdx.x) < first) return;
  out[threadIdx.x] = __shfl_sync(kAll << first, int(threadIdx.x), 0);
}
bool from_others(int first) {
  const Array<int> out(std::vector<int>(32));
  of_others<<<1, 32>>>(out.data(), first);
  return same(out.values(), std::vector<int>(32));
}

}  // namespace

Cases lane_cases() {
  return {
      {"lanes_meet", "", lanes_meet},
      {"lanes_on_both_sides", "", sides},
      {"lanes_of_own_masks", "", groups},
      {"lanes_end_early", "", early_ends},
      {"lanes_of_narrow_block", "", part_of_warp},
      {"atomics", "", atomics},
      {"lanes_together", "", [] { return lanes_apart(0); }},
      {"lanes_apart", "threads wait for ever*thread 16 at line", [] { return lanes_apart(16); }},
      {"shuffle", "", [] { return from_others(0); }},
      {"shuffle_of_others", "a shuffle reads a lane", [] { return from_others(16); }},
  };
}

}  // namespace lrnn::emulator::cases
