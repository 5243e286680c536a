#include <algorithm>

#include "kernels/cuda/tile/common.cuh"
#include "kernels/cuda/train/adamw.h"

// Gradients gathered into one flat buffer, their norm in one order, and the update.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kEach = 8;      // elements a thread gathers
constexpr int64_t kBlock = kThreads * kEach;  // and a block, of one piece
constexpr int64_t kMostBlocks = 660;  // as many as an H200 runs at once

// The sum over a block, in one order; every thread gets it.
__device__ double block_sum(double x, double* shared) {
  const int t = int(threadIdx.x);
  __syncthreads();
  shared[t] = x;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (t < half) shared[t] += shared[t + half];
    __syncthreads();
  }
  return shared[0];
}

// What one launch gathers: the table travels with the launch, so nothing has to be copied first.
struct Pieces {
  GradientPiece of[kPiecesAtOnce];
  int first_block[kPiecesAtOnce + 1];
  int count;
};

__global__ void __launch_bounds__(kThreads)
    gather_pieces(const __grid_constant__ Pieces pieces, float* flat, double* partial) {
  __shared__ double shared[kThreads];
  int at = 0, end = pieces.count;
  while (end - at > 1) {
    const int middle = (at + end) / 2;
    (pieces.first_block[middle] <= int(blockIdx.x) ? at : end) = middle;
  }
  const GradientPiece& piece = pieces.of[at];
  const int64_t first = int64_t(int(blockIdx.x) - pieces.first_block[at]) * kBlock + threadIdx.x;
  double sum = 0;
#pragma unroll
  for (int u = 0; u < kEach; ++u) {
    const int64_t i = first + u * kThreads;
    if (i >= piece.size) continue;
    float g = piece.wide ? piece.wide[i] : 0.f;
    if (piece.narrow) g += __uint_as_float(uint32_t(piece.narrow[i]) << 16);
    flat[piece.begin + i] = g;
    sum += double(g) * double(g);
  }
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

int64_t blocks_of(const GradientPiece& piece) { return (piece.size + kBlock - 1) / kBlock; }

// One weight.
struct Weight {
  float value, m, v;
};
__device__ __forceinline__ Weight moved(const AdamW& a, const Weight& w, float grad, bool decays,
                                        float scale, float rate, float root, float keep) {
  const float g = grad * scale;
  const float m = a.beta1 * w.m + a.rest1 * g, v = a.beta2 * w.v + a.rest2 * g * g;
  return {w.value * (decays ? keep : 1.f) - rate * (m / (sqrtf(v) / root + a.eps)), m, v};
}

// Every block adds up the partial sums for itself: cheaper than another launch. Weights go by four
// where they lie on 16 bytes: large models are bound by memory here.
__global__ void __launch_bounds__(kThreads) update(AdamW a, bool by_four) {
  __shared__ double shared[kThreads];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < a.partials; i += kThreads) sum += a.partial[i];
  const double norm = sqrt(block_sum(sum, shared));
  const double clip = a.settings[3];
  const bool active = a.settings[5] != 0 && isfinite(norm) && isfinite(a.report[0]);
  if (blockIdx.x == 0 && threadIdx.x == 0) a.report[2] = norm, a.report[3] = active ? 1 : 0;
  if (!active) return;
  const float scale = clip > 0 ? float(fmin(1.0, clip / (norm + 1e-6))) : 1.f;
  const float rate = float(a.settings[0]), root = float(a.settings[1]), keep = float(a.settings[2]);
  const auto move = [&](const Weight& w, float grad, bool decays) {
    return moved(a, w, grad, decays, scale, rate, root, keep);
  };
  const int64_t first = blockIdx.x * int64_t(kThreads) + threadIdx.x,
                step = int64_t(gridDim.x) * kThreads, fours = by_four ? a.n / 4 : 0;
  for (int64_t i = first; i < fours; i += step) {
    float4 p = reinterpret_cast<float4*>(a.values)[i], m = reinterpret_cast<float4*>(a.m)[i],
           v = reinterpret_cast<float4*>(a.v)[i];
    const float4 g = reinterpret_cast<const float4*>(a.grads)[i];
    const uchar4 d = reinterpret_cast<const uchar4*>(a.decays)[i];
    const auto one = [&](float& p1, float& m1, float& v1, float g1, unsigned char d1) {
      const Weight w = move({p1, m1, v1}, g1, d1 != 0);
      p1 = w.value, m1 = w.m, v1 = w.v;
    };
    one(p.x, m.x, v.x, g.x, d.x), one(p.y, m.y, v.y, g.y, d.y);
    one(p.z, m.z, v.z, g.z, d.z), one(p.w, m.w, v.w, g.w, d.w);
    reinterpret_cast<float4*>(a.values)[i] = p;
    reinterpret_cast<float4*>(a.m)[i] = m, reinterpret_cast<float4*>(a.v)[i] = v;
  }
  for (int64_t i = 4 * fours + first; i < a.n; i += step) {
    const Weight w = move({a.values[i], a.m[i], a.v[i]}, a.grads[i], a.decays[i]);
    a.values[i] = w.value, a.m[i] = w.m, a.v[i] = w.v;
  }
}

bool on_sixteen(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

}  // namespace

int64_t gather_blocks(const GradientPiece* pieces, int64_t count) {
  int64_t blocks = 0;
  for (int64_t i = 0; i < count; ++i) blocks += blocks_of(pieces[i]);
  return blocks;
}

void gather(const GradientPiece* pieces, int64_t count, float* flat, double* partial,
            void* stream) {
  for (int64_t first = 0; first < count; first += kPiecesAtOnce) {
    Pieces now{};
    now.count = int(std::min<int64_t>(kPiecesAtOnce, count - first));
    int64_t blocks = 0;
    for (int i = 0; i < now.count; ++i) {
      now.of[i] = pieces[first + i], now.first_block[i] = int(blocks);
      blocks += blocks_of(now.of[i]);
      check(blocks < (int64_t(1) << 31), "[adamw] too many parameters for a grid");
    }
    now.first_block[now.count] = int(blocks);
    if (blocks > 0)
      gather_pieces<<<unsigned(blocks), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(now, flat,
                                                                                          partial);
    partial += blocks;
  }
  check_launch("adamw");
}

void adamw(const AdamW& a, void* stream) {
  const bool by_four = on_sixteen(a.values) && on_sixteen(a.grads) && on_sixteen(a.m) &&
                       on_sixteen(a.v) && on_sixteen(a.decays);
  const int64_t each = by_four ? 4 * kThreads : kThreads;
  const int64_t blocks = std::clamp<int64_t>((a.n + each - 1) / each, 1, kMostBlocks);
  update<<<unsigned(blocks), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(a, by_four);
  check_launch("adamw");
}

}  // namespace lrnn::kernels::cuda
