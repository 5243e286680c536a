#include "kernels/cuda/tile/pack.cuh"
#include "kernels/cuda/train/losses.h"

// A block has a row. Rows of bfloat16 that its registers hold are read once: their largest value,
// the sum of their exponentials and what overwrites them are made of the registers. The others are
// read once from memory, with the largest value and the sum of the exponentials so far in every
// thread, and once more, from the cache or not, to overwrite them.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kSweep = kThreads * kPack;

// exp(x - most). A product of bfloat16 has no use for the last bits.
template <Type kType, class R> __device__ __forceinline__ R exp_below(R x, R most) {
  if constexpr (kType == Type::kBFloat16)
    return exp2f((x - most) * 1.4426950408889634f);
  else
    return exp_of(x - most);
}

template <Type kType, class R> struct Softmax {
  R most = -INFINITY, sum = 0;
  int64_t at = INT64_MAX;  // where the largest is, the first of several

  __device__ __forceinline__ void take(const R (&x)[kPack], int n, int64_t first) {
    R here = -INFINITY;
    int where = 0;
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      if (i < n && x[i] > here) here = x[i], where = i;
    if (here > most) {
      sum *= exp_below<kType>(most, here);
      most = here, at = first + where;
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      if (i < n) sum += exp_below<kType>(x[i], most);
  }
  // In this order: the sum is not the same in the other.
  __device__ __forceinline__ void take(R other_most, R other_sum, int64_t other_at) {
    const R top = other_most > most ? other_most : most;
    // Whoever has seen nothing adds nothing, and must not make exp(-inf + inf) of it.
    const R mine = most == top ? R(1) : exp_below<kType>(most, top);
    const R others = other_most == top ? R(1) : exp_below<kType>(other_most, top);
    sum = sum * mine + other_sum * others;
    if (other_most > most || (other_most == most && other_at < at)) at = other_at;
    most = top;
  }
};

template <Type kType, class R>
__global__ void __launch_bounds__(kThreads) losses(const RowLosses p, bool wide) {
  __shared__ R warp_most[kWarps], warp_sum[kWarps];
  __shared__ int64_t warp_at[kWarps];
  const int64_t row = blockIdx.x, begin = row * p.stride, target = p.target[row];
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  R* const loss = static_cast<R*>(p.loss) + row;
  R* const right = static_cast<R*>(p.right) + row;
  R x[kPack];
  const auto load = [&](int64_t first, int n) {
    Pack<R> pack;
    pack.load(kType, p.x, begin + first, n, wide);
#pragma unroll
    for (int i = 0; i < kPack; ++i) x[i] = pack.get(kType, i);
  };
  const auto count = [](int64_t first, int64_t end) {
    return int(end - first < kPack ? end - first : kPack);
  };
  if (target < 0) {
#pragma unroll
    for (int i = 0; i < kPack; ++i) x[i] = 0;
    for (int64_t i = threadIdx.x * kPack; p.gradient && i < p.stride; i += kSweep)
      store_pack<R>(kType, p.x, begin + i, count(i, p.stride), wide, x);
    if (threadIdx.x == 0) *loss = *right = 0;
    return;
  }
  Softmax<kType, R> s;
  for (int64_t i = threadIdx.x * kPack; i < p.V; i += kSweep) {
    const int n = count(i, p.V);
    load(i, n);
    s.take(x, n, i);
  }
  const R at_target = target < p.V ? load_as<R>(kType, p.x, begin + target) : R(NAN);
  for (int d = 16; d > 0; d /= 2) {
    const R most = __shfl_down_sync(0xffffffffu, s.most, d);
    const R sum = __shfl_down_sync(0xffffffffu, s.sum, d);
    const int64_t at = __shfl_down_sync(0xffffffffu, s.at, d);
    s.take(most, sum, at);
  }
  if (lane == 0) warp_most[warp] = s.most, warp_sum[warp] = s.sum, warp_at[warp] = s.at;
  __syncthreads();  // also: everybody has read the row
  Softmax<kType, R> all;
  for (int i = 0; i < kWarps; ++i) all.take(warp_most[i], warp_sum[i], warp_at[i]);
  if (threadIdx.x == 0) {
    *loss = all.most - at_target + log(all.sum);
    *right = all.at == target ? 1 : 0;
  }
  if (!p.gradient) return;
  const R share = R(p.share), scale = share / all.sum;
  for (int64_t i = threadIdx.x * kPack; i < p.stride; i += kSweep) {
    load(i, count(i, p.stride));
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const R p_j = i + j < p.V ? exp_below<kType>(x[j], all.most) * scale : R(0);
      x[j] = i + j == target ? p_j - share : p_j;
    }
    store_pack<R>(kType, p.x, begin + i, count(i, p.stride), wide, x);
  }
}

// ---------------------------------------------------------------------------- rows in registers

constexpr int kHeld = 8;  // packs of a thread: 8 loads of 16 bytes on their way at once

// By every thread, in one order; `shared` has a place for every warp, and may be used again.
template <int kBlock, class Combine>
__device__ __forceinline__ float over_block(float x, float* shared, const Combine& combine) {
  for (int d = 16; d > 0; d /= 2) x = combine(x, __shfl_xor_sync(0xffffffffu, x, d));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  float all = shared[0];
  for (int i = 1; i < kBlock / 32; ++i) all = combine(all, shared[i]);
  return all;
}

// Rows of at most kBlock * kHeld * kPack columns that lie on 16 bytes.
template <int kBlock> __global__ void __launch_bounds__(kBlock) held_losses(const RowLosses p) {
  constexpr int kStep = kBlock * kPack;
  constexpr float kLog2e = 1.4426950408889634f;
  __shared__ float largest[kBlock / 32], sums[kBlock / 32];
  __shared__ int earlier;
  const int64_t row = blockIdx.x, target = p.target[row];
  uint4* const x = reinterpret_cast<uint4*>(static_cast<uint16_t*>(p.x) + row * p.stride);
  const int columns = int(p.stride), V = int(p.V), mine = int(threadIdx.x) * kPack;
  if (target < 0) {
    for (int i = mine; p.gradient && i < columns; i += kStep) x[i / kPack] = make_uint4(0, 0, 0, 0);
    if (threadIdx.x == 0) static_cast<float*>(p.loss)[row] = static_cast<float*>(p.right)[row] = 0;
    return;
  }
  uint4 held[kHeld];
#pragma unroll
  for (int k = 0; k < kHeld; ++k) {
    const int i = mine + k * kStep;
    // What is not there is -inf, twice a word: it is no maximum and adds nothing.
    held[k] =
        i < columns ? x[i / kPack] : make_uint4(0xff80ff80u, 0xff80ff80u, 0xff80ff80u, 0xff80ff80u);
  }
  const auto each = [&](const auto& take) {
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
      const uint32_t words[] = {held[k].x, held[k].y, held[k].z, held[k].w};
#pragma unroll
      for (int j = 0; j < kPack; ++j)
        take(__uint_as_float(j % 2 ? words[j / 2] & 0xffff0000u : words[j / 2] << 16),
             mine + k * kStep + j);
    }
  };
  // The columns behind V are those of the last pack or packs.
  const bool padded = columns != V;
  float most = -INFINITY, sum = 0;
  each([&](float v, int i) { most = !padded || i < V ? fmaxf(most, v) : most; });
  if (threadIdx.x == 0) earlier = 0;
  most = over_block<kBlock>(most, largest, [](float a, float b) { return fmaxf(a, b); });
  const float shift = most * kLog2e;
  each([&](float v, int i) { sum += !padded || i < V ? exp2f(fmaf(v, kLog2e, -shift)) : 0.f; });
  sum = over_block<kBlock>(sum, sums, [](float a, float b) { return a + b; });
  // Before anybody writes: all have read their share of the row, and two barriers are behind them.
  const float at_target =
      target < V ? load_as<float>(Type::kBFloat16, p.x, row * p.stride + target) : NAN;
  const bool hit = at_target == most;
  if (hit) {  // the first of several counts
    each([&](float v, int i) {
      if (v == most && i < target) earlier = 1;
    });
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    static_cast<float*>(p.loss)[row] = most - at_target + logf(sum);
    static_cast<float*>(p.right)[row] = hit && !earlier ? 1 : 0;
  }
  if (!p.gradient) return;
  const float share = float(p.share), scale = share / sum;
#pragma unroll
  for (int k = 0; k < kHeld; ++k) {
    const int first = mine + k * kStep;
    if (first >= columns) continue;
    const uint32_t words[] = {held[k].x, held[k].y, held[k].z, held[k].w};
    float d[kPack];
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float v = __uint_as_float(j % 2 ? words[j / 2] & 0xffff0000u : words[j / 2] << 16);
      d[j] = !padded || first + j < V ? exp2f(fmaf(v, kLog2e, -shift)) * scale : 0.f;
      if (first + j == target) d[j] -= share;
    }
    store_pack<float>(Type::kBFloat16, p.x, row * p.stride + first, kPack, true, d);
  }
}

// Whether there is a block for such rows, and then it is started.
bool start_held(const RowLosses& p, bool wide, cudaStream_t on) {
  constexpr int kFew = 512, kMany = 1024, kEach = kHeld * kPack;
  if (p.type != Type::kBFloat16 || !wide || p.stride % kPack || p.stride > kMany * kEach)
    return false;
  const auto grid = unsigned(p.rows);
  if (p.stride <= kFew * kEach)
    held_losses<kFew><<<grid, kFew, 0, on>>>(p);
  else
    held_losses<kMany><<<grid, kMany, 0, on>>>(p);
  return true;
}

template <class R> __global__ void __launch_bounds__(kThreads) add_up(const RowLossSums p) {
  __shared__ double shared[kThreads][2];
  const int t = int(threadIdx.x);
  double sums[2] = {0, 0};
  for (int64_t i = t; i < p.rows; i += kThreads)
    sums[0] += double(static_cast<const R*>(p.loss)[i]),
        sums[1] += double(static_cast<const R*>(p.right)[i]);
  shared[t][0] = sums[0], shared[t][1] = sums[1];
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (t < half)
      for (int j = 0; j < 2; ++j) shared[t][j] += shared[t + half][j];
    __syncthreads();
  }
  if (t > 0) return;
  *static_cast<R*>(p.loss_sum) = R(shared[0][0] * p.share);
  *static_cast<R*>(p.right_sum) = R(shared[0][1]);
}

}  // namespace

void row_losses(const RowLosses& p, void* stream) {
  if (p.rows == 0 || p.V == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  const auto grid = unsigned(p.rows);
  const bool wide =
      reinterpret_cast<uintptr_t>(p.x) % 16 == 0 && p.stride * size_of(p.type) % 16 == 0;
  if (start_held(p, wide, on)) return check_launch("linear_cross_entropy");
  if (p.type == Type::kBFloat16)
    losses<Type::kBFloat16, float><<<grid, kThreads, 0, on>>>(p, wide);
  else if (p.type == Type::kFloat32)
    losses<Type::kFloat32, float><<<grid, kThreads, 0, on>>>(p, wide);
  else
    losses<Type::kFloat64, double><<<grid, kThreads, 0, on>>>(p, wide);
  check_launch("linear_cross_entropy");
}

void add_row_losses(const RowLossSums& p, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.type == Type::kFloat64)
    add_up<double><<<1, kThreads, 0, on>>>(p);
  else
    add_up<float><<<1, kThreads, 0, on>>>(p);
  check_launch("linear_cross_entropy");
}

}  // namespace lrnn::kernels::cuda
