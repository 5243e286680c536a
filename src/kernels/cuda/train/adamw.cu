#include <algorithm>

#include "kernels/cuda/tile/common.cuh"
#include "kernels/cuda/train/adamw.h"

// Two passes over the gradients where they lie: their norm, in one order, and the update.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kEach = 8, kFour = 4;
// Blocks of a pass, beside one for what is left of each piece. Every block of the second adds up
// all sums of the first, so there should not be too many of either.
constexpr int64_t kMostSums = 4096, kMostUpdates = 2640;

// What one launch works on: the table travels with the launch, so nothing has to be copied first.
struct Pieces {
  GradientPiece of[kPiecesAtOnce];
  int first_block[kPiecesAtOnce + 1];
  int count;
  int64_t each;  // elements of a block, all of one piece

  __device__ __forceinline__ const GradientPiece& find(int64_t& begin, int64_t& end) const {
    int at = 0, behind = count;
    while (behind - at > 1) {
      const int middle = (at + behind) / 2;
      (first_block[middle] <= int(blockIdx.x) ? at : behind) = middle;
    }
    begin = int64_t(int(blockIdx.x) - first_block[at]) * each;
    end = begin + each < of[at].size ? begin + each : of[at].size;
    return of[at];
  }
};

__device__ __forceinline__ float widened(uint32_t bfloat16) {
  return __uint_as_float(bfloat16 << 16);
}
__device__ __forceinline__ float gradient(const GradientPiece& piece, int64_t i) {
  float g = piece.wide ? piece.wide[i] : 0.f;
  if (piece.narrow) g += widened(piece.narrow[i]);
  return g;
}

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

__global__ void __launch_bounds__(kThreads)
    sum_squares(const __grid_constant__ Pieces pieces, double* to) {
  __shared__ double shared[kThreads];
  int64_t begin, end;
  const GradientPiece& piece = pieces.find(begin, end);
  double sum = 0;
  for (int64_t first = begin + threadIdx.x; first < end; first += kThreads * kEach) {
    float g[kEach];
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
      const int64_t i = first + u * kThreads;
      g[u] = i < end ? gradient(piece, i) : 0.f;
    }
#pragma unroll
    for (int u = 0; u < kEach; ++u) sum += double(g[u]) * double(g[u]);
  }
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) to[blockIdx.x] = sum;
}

struct Step {
  float scale, rate, root, keep;
};

// One weight.
__device__ __forceinline__ void move(const AdamW& a, const Step& s, float grad, float& value,
                                     float& m, float& v) {
  const float g = grad * s.scale;
  m = a.beta1 * m + a.rest1 * g, v = a.beta2 * v + a.rest2 * g * g;
  value = value * s.keep - s.rate * (m / (sqrtf(v) / s.root + a.eps));
}

__device__ __forceinline__ bool lies_on(const void* p, int bytes) {
  return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

// Weights go by four where they lie on 16 bytes: large models are bound by memory here.
__device__ int64_t move_by_four(const AdamW& a, const Step& s, const GradientPiece& piece,
                                int64_t begin, int64_t end) {
  float* const value = a.values + piece.begin;
  float *const m = a.m + piece.begin, *const v = a.v + piece.begin;
  if (!lies_on(value, 16) || !lies_on(m, 16) || !lies_on(v, 16) || !lies_on(piece.wide, 16) ||
      !lies_on(piece.narrow, 8))
    return begin;
  const int64_t whole = begin + (end - begin) / kFour * kFour;
  for (int64_t i = begin + kFour * threadIdx.x; i < whole; i += kFour * kThreads) {
    float4 p4 = *reinterpret_cast<float4*>(value + i), m4 = *reinterpret_cast<float4*>(m + i),
           v4 = *reinterpret_cast<float4*>(v + i);
    float4 g =
        piece.wide ? *reinterpret_cast<const float4*>(piece.wide + i) : make_float4(0, 0, 0, 0);
    if (piece.narrow) {
      const ushort4 n = *reinterpret_cast<const ushort4*>(piece.narrow + i);
      g.x += widened(n.x), g.y += widened(n.y), g.z += widened(n.z), g.w += widened(n.w);
    }
    move(a, s, g.x, p4.x, m4.x, v4.x), move(a, s, g.y, p4.y, m4.y, v4.y);
    move(a, s, g.z, p4.z, m4.z, v4.z), move(a, s, g.w, p4.w, m4.w, v4.w);
    *reinterpret_cast<float4*>(value + i) = p4;
    *reinterpret_cast<float4*>(m + i) = m4, *reinterpret_cast<float4*>(v + i) = v4;
  }
  return whole;
}

// Every block adds up the sums of squares for itself: cheaper than another launch. Zeros behind
// them change no bit.
__global__ void __launch_bounds__(kThreads)
    update(const __grid_constant__ Pieces pieces, const AdamW a, bool report) {
  __shared__ double shared[kThreads];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < a.sums; i += kThreads) sum += a.squares[i];
  const double norm = sqrt(block_sum(sum, shared));
  const double clip = a.settings[3];
  const bool active = a.settings[5] != 0 && isfinite(norm) && isfinite(a.report[0]);
  if (report && blockIdx.x == 0 && threadIdx.x == 0)
    a.report[2] = norm, a.report[3] = active ? 1 : 0;
  if (!active) return;
  int64_t begin, end;
  const GradientPiece& piece = pieces.find(begin, end);
  const Step s{clip > 0 ? float(fmin(1.0, clip / (norm + 1e-6))) : 1.f, float(a.settings[0]),
               float(a.settings[1]), piece.decays ? float(a.settings[2]) : 1.f};
  for (int64_t i = move_by_four(a, s, piece, begin, end) + threadIdx.x; i < end; i += kThreads) {
    const int64_t at = piece.begin + i;
    move(a, s, gradient(piece, i), a.values[at], a.m[at], a.v[at]);
  }
}

// Elements of a block: `least`, or a multiple of it where there would be too many blocks.
int64_t elements_of(const GradientPiece* pieces, int64_t count, int64_t least, int64_t most) {
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) total += pieces[i].size;
  return least * std::max<int64_t>(1, (total + least * most - 1) / (least * most));
}

int64_t blocks_of(const GradientPiece& piece, int64_t each) {
  return (piece.size + each - 1) / each;
}

// Calls `launch` with tables of so many pieces as one can hold, and how many blocks they have.
template <class Launch>
void in_tables(const GradientPiece* pieces, int64_t count, int64_t each, const Launch& launch) {
  for (int64_t first = 0; first < count; first += kPiecesAtOnce) {
    Pieces now{};
    now.count = int(std::min<int64_t>(kPiecesAtOnce, count - first));
    now.each = each;
    int64_t blocks = 0;
    for (int i = 0; i < now.count; ++i) {
      now.of[i] = pieces[first + i], now.first_block[i] = int(blocks);
      blocks += blocks_of(now.of[i], each);
      check(blocks < (int64_t(1) << 31), "[adamw] too many parameters for a grid");
    }
    now.first_block[now.count] = int(blocks);
    if (blocks > 0) launch(now, unsigned(blocks));
  }
}

int64_t elements_of_a_sum(const GradientPiece* pieces, int64_t count) {
  return elements_of(pieces, count, kThreads * kEach, kMostSums);
}

void squares_by(const GradientPiece* pieces, int64_t count, int64_t each, double* to,
                void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  in_tables(pieces, count, each, [&](const Pieces& table, unsigned blocks) {
    sum_squares<<<blocks, kThreads, 0, on>>>(table, to);
    to += blocks;
  });
  check_launch("squares of gradients");
}

}  // namespace

int64_t gradient_sums(const GradientPiece* pieces, int64_t count) {
  const int64_t each = elements_of_a_sum(pieces, count);
  int64_t blocks = 0;
  for (int64_t i = 0; i < count; ++i) blocks += blocks_of(pieces[i], each);
  return blocks;
}

void gradient_squares(const GradientPiece* pieces, int64_t count, double* to, void* stream) {
  squares_by(pieces, count, elements_of_a_sum(pieces, count), to, stream);
}

void squares(const float* x, int64_t n, int64_t each, double* to, void* stream) {
  const GradientPiece whole{x, nullptr, 0, n, false};
  squares_by(&whole, 1, each, to, stream);
}

void adamw(const AdamW& a, const GradientPiece* pieces, int64_t count, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  bool first = true;
  in_tables(pieces, count, elements_of(pieces, count, kThreads * kFour, kMostUpdates),
            [&](const Pieces& table, unsigned blocks) {
              update<<<blocks, kThreads, 0, on>>>(table, a, first);
              first = false;
            });
  check_launch("adamw");
}

}  // namespace lrnn::kernels::cuda
