#include "kernels/cuda/mlstm/hopper.cuh"
#include "kernels/cuda/tile/async.cuh"
#include "kernels/cuda/tile/functions.cuh"
#include "kernels/cuda/tile/wgmma.cuh"

// What the tokens of a chunk are to each other, all chunks at once: a warp group has a chunk of one
// head, and 64 columns of its rows at a time.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 128, kStage = 2 * kTileBytes, kStages = 2;

struct Pairs {
  const HopperChunk chunk;
  int64_t number, h;
  int warp, lane, g, c;
  uint32_t memory;
  __device__ __forceinline__ Pairs(const MlstmInputs& p, const unsigned char* shared)
      : chunk(hopper_chunk(p, blockIdx.x / p.H)),
        number(blockIdx.x),
        h(blockIdx.x % p.H),
        warp(threadIdx.x / 32),
        lane(threadIdx.x % 32),
        g(threadIdx.x % 32 / 4),
        c(threadIdx.x % 4),
        memory(shared_address(shared)) {}
  __device__ __forceinline__ uint32_t stage(int slice) const {
    return memory + slice % kStages * kStage;
  }
  // Slices 64 columns wide of two tensors, brought by one thread.
  __device__ __forceinline__ void prepare(uint32_t barriers) const {
    if (threadIdx.x == 0) {
      for (int i = 0; i < kStages; ++i) barrier_init(barriers + 8 * i, 1);
      wgmma::publish();
    }
    __syncthreads();
  }
  __device__ __forceinline__ void fetch(uint32_t barrier, int slice, const CUtensorMap& x,
                                        const CUtensorMap& y, int i) const {
    const int row = int(chunk.span.t0 + chunk.first);
    barrier_expect(barrier, kStage);
    bring_box(barrier, stage(slice), x, 64 * i, row, int(h), int(chunk.span.b));
    bring_box(barrier, stage(slice) + kTileBytes, y, 64 * i, row, int(h), int(chunk.span.b));
  }
  // Sums of a tile's rows times a factor each, over a warp's 16 rows; two columns a lane.
  __device__ __forceinline__ float2 weighted(const unsigned char* tile, const float* by) const {
    float2 sum = make_float2(0, 0);
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int row = 16 * warp + i;
      const uint32_t x = *reinterpret_cast<const uint32_t*>(
          tile + row * 128 + ((lane / 4 ^ (row & 7)) << 4) + lane % 4 * 4);
      if (row >= chunk.count) continue;  // another sequence's, whatever it holds
      sum.x += by[row] * low_of(x), sum.y += by[row] * high_of(x);
    }
    return sum;
  }
  // Rows 16 warp + g (+ 8), columns 8 j + 2 c as two parts in swizzled tiles.
  __device__ __forceinline__ void put(unsigned char* to, int j, const float (&x)[4]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = 16 * warp + g + 8 * i;
      uint32_t part[2];
      split(x[2 * i], x[2 * i + 1], part);
#pragma unroll
      for (int n = 0; n < 2; ++n)
        *reinterpret_cast<uint32_t*>(to + n * kTileBytes + row * 128 + ((j ^ (row & 7)) << 4) +
                                     4 * c) = part[n];
    }
  }
};

// The weights with which rows `row` and row + 8 read; of tokens after them anything.
struct PairWeights {
  const float (*record)[64];
  float high[2], low[2], scale;
  __device__ __forceinline__ PairWeights(const float (*record_)[64], int row, float scale_)
      : record(record_), scale(scale_) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      high[i] = record[kSumHigh][row + 8 * i], low[i] = record[kSumLow][row + 8 * i];
  }
  __device__ __forceinline__ float at(int i, int s) const {
    return exp2_of((high[i] - record[kFromHigh][s]) + (low[i] - record[kFromLow][s])) * scale;
  }
};

__device__ __forceinline__ void load_record(const float* from, float (*record)[64], int count) {
  for (int i = threadIdx.x; i < count * 64; i += kThreads) record[i / 64][i % 64] = from[i];
}

__global__ void __launch_bounds__(kThreads)
    pairs_forward(const __grid_constant__ MlstmForward p, const __grid_constant__ HopperMaps maps,
                  const HopperKept kept, uint16_t* to, float* adds) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ float record[kRecords][64];
  // Of two slices: warps may be at the next before the first has added up this one's.
  __shared__ float2 partial[2][4][32];
  __shared__ uint64_t full[kStages];
  pdl_trigger();
  const Pairs at(p, memory);
  if (at.chunk.count == 0) return;
  const int slices = int((p.K + 63) / 64);
  const auto barrier = [&](int i) { return shared_address(&full[i % kStages]); };
  const auto fetch = [&](int i) {
    if (threadIdx.x == 0 && i < slices) at.fetch(barrier(i), i, maps.q, maps.k, i);
  };
  at.prepare(barrier(0));
  for (int i = 0; i < kStages; ++i) fetch(i);
  pdl_wait();
  float* const mine = kept.records + at.number * kRecords * 64;
  load_record(mine, record, kAlong);
  float S[8][4];
  clear(S);
  __syncthreads();
  for (int i = 0; i < slices; ++i) {
    barrier_wait(barrier(i), i / kStages % 2);
    wgmma::fence();
    rows_by_rows<false, 64>(S, at.stage(i), at.stage(i) + kTileBytes);
    wgmma::commit();
    partial[i % 2][at.warp][at.lane] =
        at.weighted(memory + i % kStages * kStage + kTileBytes, record[kWrite]);
    wgmma::wait<0>();
    wgmma::hold(S);
    __syncthreads();
    fetch(i + kStages);
    if (threadIdx.x < 32 && 64 * i + 2 * at.lane < p.K) {
      float2 sum = make_float2(0, 0);
#pragma unroll
      for (const auto& of : partial[i % 2]) sum.x += of[at.lane].x, sum.y += of[at.lane].y;
      *reinterpret_cast<float2*>(adds + at.number * p.K + 64 * i + 2 * at.lane) = sum;
    }
  }
  const int row = 16 * at.warp + at.g;
  const PairWeights weights(record, row, float(p.scale));
  float sum[2] = {};
#pragma unroll
  for (int j = 0; j < 8; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int t = row + i / 2 * 8, s = 8 * j + 2 * at.c + i % 2;
      S[j][i] = s <= t ? S[j][i] * weights.at(i / 2, s) : 0.f;
      sum[i / 2] += S[j][i];
    }
    at.put(memory, j, S[j]);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    sum[i] = sum_lanes<4>(sum[i]);
    if (at.c == 0) mine[kAlong * 64 + row + 8 * i] = sum[i];
  }
  wgmma::publish();
  __syncthreads();
  if (threadIdx.x == 0) {
    send(to + at.number * kPairs, at.memory, kPairBytes);
    send_commit();
    send_wait<0>();
  }
}

__global__ void __launch_bounds__(kThreads)
    pairs_backward(const __grid_constant__ MlstmBackward p, const __grid_constant__ HopperMaps maps,
                   const HopperKept kept, const HopperWork work) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ float record[kRecords][64], inverse[64], one[64], read_one[64], columns[4][64];
  // Of two slices: warps may be at the next before the first has added up this one's.
  __shared__ float2 partial[2][4][32];
  __shared__ uint64_t full[kStages];
  pdl_trigger();
  const Pairs at(p, memory);
  if (at.chunk.count == 0) return;
  const int by_values = int((p.V + 63) / 64), slices = by_values + int((p.K + 63) / 64);
  const auto barrier = [&](int i) { return shared_address(&full[i % kStages]); };
  const auto fetch = [&](int i) {
    if (threadIdx.x != 0 || i >= slices) return;
    i < by_values ? at.fetch(barrier(i), i, maps.dh, maps.v, i)
                  : at.fetch(barrier(i), i, maps.q, maps.k, i - by_values);
  };
  at.prepare(barrier(0));
  for (int i = 0; i < kStages; ++i) fetch(i);
  load_record(kept.records + at.number * kRecords * 64, record, kAlong);
  float* const slopes = work.slopes + at.number * kSlopes * 64;
  float S[8][4], dS[8][4], shrink = 0;
  clear(S), clear(dS);
  __syncthreads();
  // Two threads a token for the sum of dh times what was read.
  const int own = threadIdx.x / 2, half = threadIdx.x % 2;
  const int64_t token =
      (at.chunk.span.b * p.T + at.chunk.span.t0 + at.chunk.first + own) * p.H + at.h;
  for (int i = 0; i < by_values; ++i) {
    float4 read[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int64_t column = 64 * i + 32 * half + 4 * j;
      read[j] = own < at.chunk.count && column < p.V
                    ? *reinterpret_cast<const float4*>(kept.read + token * p.V + column)
                    : make_float4(0, 0, 0, 0);
    }
    barrier_wait(barrier(i), i / kStages % 2);
    wgmma::fence();
    rows_by_rows<false, 64>(dS, at.stage(i), at.stage(i) + kTileBytes);
    wgmma::commit();
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
      const uint4 x = *reinterpret_cast<const uint4*>(memory + i % kStages * kStage + own * 128 +
                                                      ((4 * half + j / 2 ^ (own & 7)) << 4));
      shrink += low_of(x.x) * read[j].x + high_of(x.x) * read[j].y + low_of(x.y) * read[j].z +
                high_of(x.y) * read[j].w;
      shrink += low_of(x.z) * read[j + 1].x + high_of(x.z) * read[j + 1].y +
                low_of(x.w) * read[j + 1].z + high_of(x.w) * read[j + 1].w;
    }
    wgmma::wait<0>();
    wgmma::hold(dS);
    __syncthreads();
    fetch(i + kStages);
  }
  shrink = sum_lanes<2>(shrink);
  if (half == 0) {  // h = read / size, size = max(|n . q|, exp(-m)) + eps
    float r = 0, x = 0, dm = 0;
    if (own < at.chunk.count) {
      const float along = kept.along[at.number * 64 + own], floor = fast_exp(-record[kM][own]),
                  eps = float(p.eps);
      r = 1 / (fmaxf(fabsf(along), floor) + eps);
      const float total = shrink * r;
      x = fabsf(along) >= floor ? (along < 0 ? total : -total) : 0.f;
      dm = -eps * r * total;  // but for eps, h does not depend on m
    }
    const float read = record[kRead][own] * r;
    inverse[own] = r, one[own] = x, read_one[own] = read * x;
    slopes[kReadSlope * 64 + own] = read, slopes[kOneSlope * 64 + own] = x;
    slopes[kMSlope * 64 + own] = dm;
  }
  __syncthreads();
  for (int i = by_values; i < slices; ++i) {
    barrier_wait(barrier(i), i / kStages % 2);
    wgmma::fence();
    rows_by_rows<false, 64>(S, at.stage(i), at.stage(i) + kTileBytes);
    wgmma::commit();
    partial[i % 2][at.warp][at.lane] = at.weighted(memory + i % kStages * kStage, read_one);
    wgmma::wait<0>();
    wgmma::hold(S);
    __syncthreads();
    fetch(i + kStages);
    const int64_t column = 64 * (i - by_values) + 2 * at.lane;
    if (threadIdx.x < 32 && column < p.K) {
      float2 sum = make_float2(0, 0);
#pragma unroll
      for (const auto& of : partial[i % 2]) sum.x += of[at.lane].x, sum.y += of[at.lane].y;
      *reinterpret_cast<float2*>(work.adds + at.number * p.K + column) = sum;
    }
  }
  const int row = 16 * at.warp + at.g;
  const PairWeights weights(record, row, float(p.scale));
  const float r[2] = {inverse[row], inverse[row + 8]}, x[2] = {one[row], one[row + 8]};
  float sum[2] = {};
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    float down[2] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int t = row + i / 2 * 8, s = 8 * j + 2 * at.c + i % 2;
      const bool reads = s <= t && t < at.chunk.count;
      const float w = weights.at(i / 2, s) * r[i / 2];
      dS[j][i] = reads ? w * (dS[j][i] + x[i / 2]) : 0.f;
      const float both = reads ? dS[j][i] * S[j][i] : 0.f;
      sum[i / 2] += both, down[i % 2] += both;
      S[j][i] = reads ? S[j][i] * w : 0.f;
    }
    at.put(memory, j, S[j]), at.put(memory + kPairBytes, j, dS[j]);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int d = 4; d < 32; d *= 2) down[i] += __shfl_xor_sync(0xffffffffu, down[i], d);
      if (at.g == 0) columns[at.warp][8 * j + 2 * at.c + i] = down[i];
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    sum[i] = sum_lanes<4>(sum[i]);
    if (at.c == 0) slopes[kRowSums * 64 + row + 8 * i] = sum[i];
  }
  wgmma::publish();
  __syncthreads();
  if (threadIdx.x < 64)
    slopes[kColumnSums * 64 + threadIdx.x] = columns[0][threadIdx.x] + columns[1][threadIdx.x] +
                                             columns[2][threadIdx.x] + columns[3][threadIdx.x];
  if (threadIdx.x == 0) {
    send(work.reads + at.number * kPairs, at.memory, kPairBytes);
    send(work.slope_pairs + at.number * kPairs, at.memory + kPairBytes, kPairBytes);
    send_commit();
    send_wait<0>();
  }
}

unsigned blocks_of(const MlstmInputs& p) { return unsigned(kept_states(p, kHopperRows) * p.H); }

}  // namespace

void hopper_pairs(const MlstmForward& p, const HopperMaps& maps, const HopperKept& kept,
                  uint16_t* pairs, float* adds, void* stream) {
  hopper_launch(pairs_forward, dim3(blocks_of(p)), kThreads, kStages * kStage, stream, p, maps,
                kept, pairs, adds);
}

void hopper_pair_gradients(const MlstmBackward& p, const HopperMaps& maps, const HopperKept& kept,
                           const HopperWork& work, void* stream) {
  // After everything that was launched before.
  pairs_backward<<<blocks_of(p), kThreads, kStages * kStage, static_cast<cudaStream_t>(stream)>>>(
      p, maps, kept, work);
  check_launch("mlstm");
}

}  // namespace lrnn::kernels::cuda
