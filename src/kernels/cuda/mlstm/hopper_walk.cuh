#pragma once
#include "kernels/cuda/mlstm/hopper_walk_shape.cuh"
#include "kernels/cuda/tile/functions.cuh"

// A walk: a block has 64 columns of one head's state, and two warp groups share its depth. The
// state lies transposed in their registers, so that it is the left operand of what is read from it;
// a chunk is three products on that side:
//
//   out^T = state^T reads^T by read_by + values^T pairs^T
//   state^T <- decay state^T + (values by write_by)^T keys
//
// Only rows as the caller has them pass through shared memory. Numbers that are not inputs are two
// bfloat16. More than 256 of depth are a cluster's, whose blocks add up what they read.
namespace lrnn::kernels::cuda {

template <int kDepth, HopperRole kRole> struct Walk {
  using Shape = WalkShape<kDepth>;
  static constexpr int kThreads = Shape::kThreads;
  static constexpr bool kReverse = kRole == HopperRole::kDk || kRole == HopperRole::kDv,
                        kDots = kRole == HopperRole::kDq || kRole == HopperRole::kDk,
                        kHidden = kRole == HopperRole::kH;
  // Where a chunk's numbers lie: by which a token reads, by which it writes, and of kHidden m, else
  // what reads `row`.
  static constexpr int kReadBy = kHidden                    ? kRead * 64
                                 : kRole == HopperRole::kDq ? Shape::kSlope + kReadSlope * 64
                                                            : kWrite * 64,
                       kWriteBy = kReverse ? Shape::kSlope + kReadSlope * 64 : kWrite * 64,
                       kOne = Shape::kSlope + kOneSlope * 64;
  using State = float[Shape::kTiles][4];  // columns 16 warp + g (+ 8), depth 8 j + 2 c (+ 1)
  using Out = float[8][4];                // the same columns, tokens 8 j + 2 c (+ 1)

  const HopperWalk& p;
  const HopperMaps& maps;
  unsigned char* const memory;
  const uint32_t base;
  const int thread, group, warp, lane, g, c;
  int rank, chunks;
  int64_t tile, head, h, slot, depth0, column0;
  Span span;
  uint16_t* out_rows;  // this thread's columns of the sequence's first token
  float* read_rows;    // the same of `read`
  uint32_t own;        // where this group's columns begin in a row of tiles
  // n before the chunk, or its gradient after it; shared memory has them, too.
  float carried = 0;
  int out_stride, read_stride;
  // Of the chunk at hand.
  int chunk, count, buffer;
  const float* numbers;

  __device__ __forceinline__ Walk(const HopperWalk& p_, const HopperMaps& maps_,
                                  unsigned char* memory_)
      : p(p_),
        maps(maps_),
        memory(memory_),
        base(shared_address(memory_)),
        thread(int(threadIdx.x)),
        group(thread / 128),
        warp(thread / 32 % 4),
        lane(thread % 32),
        g(lane / 4),
        c(lane % 4) {
    rank = int(blockIdx.x % unsigned(p.ranks));
    const int64_t index = blockIdx.x / unsigned(p.ranks);
    tile = index % p.tiles, head = index / p.tiles;
    const int64_t s = head / p.H;
    h = head - s * p.H, span = span_of(p, s), slot = first_kept(p, s, kHopperRows);
    chunks = int((span.length + kHopperRows - 1) / kHopperRows);
    depth0 = int64_t(rank) * kDepth, column0 = 64 * tile;
    const int64_t column = column0 + 4 * (thread % 16);
    out_stride = int(p.out.token), read_stride = int(p.H * p.columns);
    out_rows = static_cast<uint16_t*>(p.out.data) + row_at(p.out, span.b, span.t0, 0, h) + column;
    read_rows = p.read + ((span.b * p.T + span.t0) * p.H + h) * p.columns + column;
    if (carries() && p.first_vector) carried = p.first_vector[vector_at()];
    own = uint32_t(group * Shape::kOwn / 64 * kTileBytes + group * Shape::kOwn % 64 * 2);
  }
  __device__ __forceinline__ bool leads() const { return rank == 0; }  // what is not by depth
  // A thread carries one number of depth, or of the block's columns.
  __device__ __forceinline__ bool carries() const {
    return kHidden                    ? thread < kDepth && depth0 + thread < p.depth
           : kRole == HopperRole::kDk ? thread < 64 && column0 + thread < p.columns
                                      : false;
  }
  __device__ __forceinline__ int64_t vector_at() const {
    return kHidden ? head * p.depth + depth0 + thread : head * p.columns + column0 + thread;
  }
  __device__ __forceinline__ float* vector() const {
    return reinterpret_cast<float*>(memory + Shape::kCarried);
  }
  __device__ __forceinline__ void carry() {
    if (!carries()) return;
    if (kHidden && p.kept_vectors && tile == 0)
      p.kept_vectors[number_of(chunk) * p.depth + depth0 + thread] = carried;
    carried = numbers[kRead * 64 + 63] * carried +
              numbers[(kHidden ? Shape::kVector : Shape::kRow) + thread];
    vector()[thread] = carried;
  }
  __device__ __forceinline__ int chunk_of(int step) const {
    return kReverse ? chunks - 1 - step : step;
  }
  __device__ __forceinline__ int count_of(int n) const {
    return int(min(int64_t(kHopperRows), span.length - int64_t(n) * kHopperRows));
  }
  __device__ __forceinline__ int64_t number_of(int n) const { return (slot + n) * p.H + h; }
  __device__ __forceinline__ float* sums() const {
    return reinterpret_cast<float*>(memory + Shape::kSums);
  }
  __device__ __forceinline__ uint32_t stage() const { return base + buffer * Shape::kStage; }
  __device__ __forceinline__ void begin(int step) {
    chunk = chunk_of(step), count = count_of(chunk), buffer = step % 2;
    numbers =
        reinterpret_cast<const float*>(memory + Shape::kNumbers) + buffer * Shape::kNumbersEach;
  }
  __device__ __forceinline__ float2 two(int at) const {
    return *reinterpret_cast<const float2*>(numbers + at);
  }

  // Where an element of the state is in memory, or -1.
  __device__ __forceinline__ int64_t place(int j, int i) const {
    const int64_t column = column0 + 16 * warp + g + i / 2 * 8,
                  depth = depth0 + group * Shape::kOwn + 8 * j + 2 * c + i % 2;
    return column < p.columns && depth < p.depth
               ? head * p.depth * p.columns + depth * p.depth_stride + column * p.column_stride
               : -1;
  }

  // ------------------------------------------------------------------------------------ copies
  __device__ __forceinline__ uint32_t full(int n) const { return base + Shape::kBarriers + 8 * n; }
  // What nobody brings is zeros.
  __device__ __forceinline__ void prepare() const {
    for (int i = thread; i < 2 * Shape::kNumbersEach; i += kThreads)
      reinterpret_cast<float*>(memory + Shape::kNumbers)[i] = 0;
    if (thread < kDepth) vector()[thread] = carried;
    if (!leads())
      for (int i = thread; i < kPairBytes / 16; i += kThreads)
        reinterpret_cast<uint4*>(memory + Shape::kPairsAt)[i] = make_uint4(0, 0, 0, 0);
    if (thread == 0)
      for (int i = 0; i < 3; ++i) barrier_init(full(i), 1);
    wgmma::publish();
    __syncthreads();
  }
  // Rows beyond a sequence are another's. Their weights are zero; they may hold anything.
  __device__ __forceinline__ void clear_beyond() const {
    if (!p.cu_seqlens || count == kHopperRows) return;
    const int each = (kHopperRows - count) * 8;
    for (int i = thread; i < (kDepth / 64 + 1) * each; i += kThreads)
      *reinterpret_cast<uint4*>(memory + buffer * Shape::kStage + Shape::kKeys +
                                i / each * kTileBytes + count * 128 + i % each * 16) =
          make_uint4(0, 0, 0, 0);
    wgmma::publish();
    __syncthreads();
  }
  // Copies are one thread's.
  __device__ __forceinline__ void bring_rows(uint32_t barrier, uint32_t to, const CUtensorMap& map,
                                             int n, int64_t column) const {
    bring_box(barrier, to, map, int(column), int(span.t0) + n * kHopperRows, int(h), int(span.b));
  }
  __device__ __forceinline__ void bring_numbers(uint32_t barrier, int to, const float* from,
                                                int n) const {
    bring(barrier, base + Shape::kNumbers + 4 * to, from, 4 * n);
  }
  __device__ __forceinline__ void fetch_stage(int step) const {
    const CUtensorMap &reads = kHidden                    ? maps.q
                               : kRole == HopperRole::kDq ? maps.dh
                               : kRole == HopperRole::kDk ? maps.v
                                                          : maps.k,
                      &keys = kHidden                    ? maps.k
                              : kRole == HopperRole::kDq ? maps.v
                              : kRole == HopperRole::kDk ? maps.dh
                                                         : maps.q,
                      &values = kHidden                    ? maps.v
                                : kRole == HopperRole::kDq ? maps.k
                                : kRole == HopperRole::kDk ? maps.q
                                                           : maps.dh;
    const int n = chunk_of(step), buffer = step % 2, at = buffer * Shape::kNumbersEach;
    const uint32_t to = base + buffer * Shape::kStage, barrier = full(buffer);
    const int depth = int(min(p.depth - depth0, int64_t(kDepth))),
              columns = int(min(p.columns - column0, int64_t(64)));
    barrier_expect(barrier, Shape::kStage + 4 * (kRecords * 64 + (kHidden ? depth : kSlopes * 64) +
                                                 (kDots ? columns : 0)));
#pragma unroll
    for (int i = 0; i < kDepth / 64; ++i) {
      bring_rows(barrier, to + Shape::kReads + i * kTileBytes, reads, n, depth0 + 64 * i);
      bring_rows(barrier, to + Shape::kKeys + i * kTileBytes, keys, n, depth0 + 64 * i);
    }
    bring_rows(barrier, to + Shape::kValues, values, n, column0);
    bring_numbers(barrier, at, p.records + number_of(n) * kRecords * 64, kRecords * 64);
    if constexpr (kHidden)
      bring_numbers(barrier, at + Shape::kVector, p.vectors + number_of(n) * p.depth + depth0,
                    depth);
    else
      bring_numbers(barrier, at + Shape::kSlope, p.slopes + number_of(n) * kSlopes * 64,
                    kSlopes * 64);
    if constexpr (kDots)
      bring_numbers(barrier, at + Shape::kRow, p.vectors + number_of(n) * p.columns + column0,
                    columns);
  }
  __device__ __forceinline__ void fetch_pairs(int step) const {
    if (!leads() && !kDots) return;
    const int n = chunk_of(step);
    const uint32_t barrier = full(2);
    barrier_expect(barrier, (leads() ? kPairBytes : 0) + (kDots ? kTileBytes : 0));
    if (leads())
      bring(barrier, base + Shape::kPairsAt, p.pairs + number_of(n) * kPairs, kPairBytes);
    if constexpr (kDots)
      bring_rows(barrier, base + Shape::kWith, kReverse ? maps.k : maps.q, n, column0);
  }
  __device__ __forceinline__ void wait_pairs(int step) const {
    if (leads() || kDots) barrier_wait(full(2), step % 2);
  }

  // ----------------------------------------------------------------------------------- a chunk
  // 16 tokens of a tile [tokens, columns], transposed, with the warp's columns.
  __device__ __forceinline__ Fragment<1> transposed_rows(uint32_t from, int token) const {
    const int row = token + lane % 8 + lane / 16 * 8, piece = 2 * warp + lane / 8 % 2;
    Fragment<1> out;
    ldmatrix_transposed(out.part[0], from + row * 128 + ((piece ^ (row & 7)) << 4));
    return out;
  }

  // n . q by this group's depth, two threads a token.
  __device__ __forceinline__ void along() const {
    constexpr int kPieces = Shape::kOwn / 16;
    const int row = thread % 128 / 2, first = (2 * group + thread % 2) * kPieces;
    const float* const n = vector();
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int piece = first + i;
      const uint4 x = *reinterpret_cast<const uint4*>(memory + buffer * Shape::kStage +
                                                      Shape::kReads + piece / 8 * kTileBytes +
                                                      row * 128 + ((piece % 8 ^ (row & 7)) << 4));
      float y[4], z[4];
      load_four(n + 8 * piece, y), load_four(n + 8 * piece + 4, z);
      sum += low_of(x.x) * y[0] + high_of(x.x) * y[1] + low_of(x.y) * y[2] + high_of(x.y) * y[3];
      sum += low_of(x.z) * z[0] + high_of(x.z) * z[1] + low_of(x.w) * z[2] + high_of(x.w) * z[3];
    }
    sum = sum_lanes<2>(sum);
    if (thread % 2 == 0) sums()[(group * 64 + row) * kSumStride + 64] = sum;
  }

  // What is read of the state.
  __device__ __forceinline__ void read(const State& state, Out& out, bool others_read) const {
    Fragment<2> a[Shape::kSteps];
    as_fragments(a, state);
    wgmma::fence();
    times_rows<true, kTileBytes>(out, a, stage() + Shape::kReads + own);
    wgmma::commit();
    if (others_read) cluster_wait();  // the sums of the chunk before
    if constexpr (kHidden) along();
    wgmma::wait<0>();
    wgmma::hold(out);
    if constexpr (kDots)
      if (leads() && group == 0) {  // one more row of the state, which x reads, or one
        const float* const row = (kReverse ? vector() : numbers + Shape::kRow) + 16 * warp + g;
        const float above = row[0], below = row[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const float2 x = kReverse ? make_float2(1, 1) : two(kOne + 8 * j + 2 * c);
          out[j][0] += above * x.x, out[j][1] += above * x.y;
          out[j][2] += below * x.x, out[j][3] += below * x.y;
        }
      }
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float2 by = two(kReadBy + 8 * j + 2 * c);
      out[j][0] *= by.x, out[j][1] *= by.y, out[j][2] *= by.x, out[j][3] *= by.y;
    }
  }

  // The products of that with the same columns of `with`: what the gates pass.
  __device__ __forceinline__ void dots(const Out& out) const {
    float dots[16];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const auto with = transposed_rows(base + Shape::kWith, 16 * k);
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const float(&x)[4] = out[2 * k + j];
        const uint32_t above = with.part[0][2 * j], below = with.part[0][2 * j + 1];
        dots[4 * k + 2 * j] = x[0] * low_of(above) + x[2] * low_of(below);
        dots[4 * k + 2 * j + 1] = x[1] * high_of(above) + x[3] * high_of(below);
      }
    }
    fold<8>(dots, lane), fold<4>(dots, lane), fold<2>(dots, lane);
#pragma unroll
    for (int i = 0; i < 2; ++i)
      sums()[(group * 64 + 8 * g + 2 * c + i) * kSumStride + 64 + warp] = dots[i];
  }

  // What tokens of the chunk read of each other, and the state after it. The groups share the
  // tokens that are read.
  __device__ __forceinline__ void next(State& state, Out& out) const {
    Fragment<1> mine[2];
    Fragment<2> scaled[4];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      mine[k] = transposed_rows(stage() + Shape::kValues, 16 * (2 * group + k));
#pragma unroll
      for (int u = 0; u < 4; ++u) mine[k].part[0][u] = leads() ? mine[k].part[0][u] : 0;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const auto values = transposed_rows(stage() + Shape::kValues, 16 * k);
      scaled[k] = times_columns<2>(values, two(kWriteBy + 16 * k + 2 * c),
                                   two(kWriteBy + 16 * k + 2 * c + 8));
    }
    const float decay = numbers[kRead * 64 + 63];
    scale_rows(state, decay, decay);
    wgmma::hold(out), wgmma::hold(state);
    wgmma::fence();
#pragma unroll
    for (int part = 0; part < 2; ++part)
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const uint32_t from = base + Shape::kPairsAt + part * kTileBytes;
        if constexpr (kReverse)
          wgmma::multiply<true, false>(
              out, mine[k].part[0],
              wgmma::rows_as_k(from + (2 * group + k) * 16 * 128, kTileBytes));
        else
          wgmma::multiply<false, false>(out, mine[k].part[0],
                                        wgmma::rows_as_n(from) + (2 * group + k) * 2);
      }
    wgmma::commit();
    times_columns<false>(state, scaled, stage() + Shape::kKeys + own, kTileBytes);
    wgmma::commit();
    wgmma::wait<1>();
    wgmma::hold(out);
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sums()[(group * 64 + 8 * j + 2 * c + i % 2) * kSumStride + 16 * warp + g + i / 2 * 8] =
            out[j][i];
    wgmma::wait<0>();
    wgmma::hold(state);
  }

  // Four columns of a token, from both groups of all blocks.
  __device__ __forceinline__ void finish(int t, float4 sum, const float4& more) const {
    if (t >= count) return;
    const int token = chunk * kHopperRows + t;
    const bool first = thread % 16 == 0, inside = column0 + 4 * (thread % 16) < p.columns;
    if constexpr (kHidden) {
      const float along = numbers[kAlong * 64 + t] + numbers[kReadBy + t] * more.x,
                  size = fmaxf(fabsf(along), fast_exp(-numbers[kM * 64 + t])) + float(p.eps),
                  inverse = reciprocal(size);
      if (p.read && inside)
        *reinterpret_cast<float4*>(read_rows + int64_t(token) * read_stride) = sum;
      if (p.along && tile == 0 && first) p.along[number_of(chunk) * 64 + t] = along;
      sum.x *= inverse, sum.y *= inverse, sum.z *= inverse, sum.w *= inverse;
    }
    if constexpr (kDots)
      if (first)
        p.dots[(tile * p.chunks + number_of(chunk)) * 64 + t] = more.x + more.y + more.z + more.w;
    if (inside)
      *reinterpret_cast<uint2*>(out_rows + int64_t(token) * out_stride) =
          make_uint2(pack(sum.x, sum.y), pack(sum.z, sum.w));
  }
  static __device__ __forceinline__ void add(float4& to, const float4& x) {
    to.x += x.x, to.y += x.y, to.z += x.z, to.w += x.w;
  }
  // Sixteen threads a token.
  __device__ __forceinline__ void add_up() const {
    float4 sum[Shape::kPasses] = {}, more[Shape::kPasses] = {};
#pragma unroll
    for (int i = 0; i < Shape::kPasses; ++i)
#pragma unroll
      for (int n = 0; n < Shape::kGroups; ++n) {
        const float* const from =
            sums() + (n * 64 + thread / 16 + i * (kThreads / 16)) * kSumStride;
        add(sum[i], *reinterpret_cast<const float4*>(from + 4 * (thread % 16)));
        if constexpr (kHidden || kDots) add(more[i], *reinterpret_cast<const float4*>(from + 64));
      }
#pragma unroll
    for (int i = 0; i < Shape::kPasses; ++i)
      finish(thread / 16 + i * (kThreads / 16), sum[i], more[i]);
  }
  // The blocks of a cluster share the tokens.
  __device__ __forceinline__ void add_up_cluster() const {
    const int rows = 64 / p.ranks;
    for (int i = thread / 16; i < rows; i += kThreads / 16) {
      const int t = rank * rows + i;
      float4 sum = make_float4(0, 0, 0, 0), more = sum;
      for (int r = 0; r < p.ranks; ++r)
#pragma unroll
        for (int n = 0; n < Shape::kGroups; ++n) {
          const uint32_t from = base + Shape::kSums + (n * 64 + t) * kSumStride * 4;
          add(sum, load_remote(from + 16 * (thread % 16), r));
          if constexpr (kHidden || kDots) add(more, load_remote(from + 256, r));
        }
      finish(t, sum, more);
    }
  }
};

}  // namespace lrnn::kernels::cuda
