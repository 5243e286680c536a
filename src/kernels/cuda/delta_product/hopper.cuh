#pragma once
#include "kernels/cuda/delta_product/chunk.cuh"
#include "kernels/cuda/tile/async.cuh"
#include "kernels/cuda/tile/tensor_map.cuh"
#include "kernels/cuda/tile/wgmma.cuh"

// What the Hopper sweeps share. A warp group keeps 64 columns of the state as rows of its
// transpose.
namespace lrnn::kernels::cuda {

// ---------------------------------------------------------------------------------------- roles
// The sweeps are warp-specialised: a block is one or two warp groups that compute (consumers), 64
// columns of the state each, and a last one that fetches their inputs, one chunk ahead (the
// producer). They meet at four barriers in shared memory:
// a stage is filled, a stage is free again.
constexpr int kMostThreads = 384, kFetchers = 128;

class Pipeline {
 public:
  static constexpr int kBytes = 32;
  // Called by all; `at` lies on 8 bytes.
  __device__ Pipeline(uint32_t at, int groups) : at_(at) {
    if (threadIdx.x == 0) {
      for (int stage = 0; stage < 2; ++stage) {
        barrier_init(at + stage * 8, kFetchers + 1);
        barrier_init(at + 16 + stage * 8, groups * 128);
      }
      wgmma::publish();  // to the copy engine
    }
    __syncthreads();
  }
  // n counts the chunks of this block; its stage is n % 2.
  __device__ void wait_filled(int n) const { barrier_wait(filling(n), n / 2 % 2); }
  __device__ void wait_free(int n) const {
    if (n >= 2) barrier_wait(at_ + 16 + n % 2 * 8, (n / 2 - 1) % 2);
  }
  __device__ uint32_t filling(int n) const { return at_ + n % 2 * 8; }
  // By every fetching thread: what it asked for has come.
  __device__ void filled(int n) const { barrier_arrive(filling(n)); }
  // By every computing thread: one for its warp would do, is no faster, and racecheck would not
  // understand it.
  __device__ void free(int n) const { barrier_arrive(at_ + 16 + n % 2 * 8); }

 private:
  uint32_t at_;
};

// T, the vectors and, if wanted, P of a chunk: each lies in one piece, swizzled by those who made
// it. `at` counts chunks of heads; kRows = 0: there is no room for P.
template <class Places, int kRows, bool kSplit>
__device__ __forceinline__ void bring_chunk(uint32_t barrier, uint32_t stage, int vectors,
                                            const ChunkWork& w, int64_t at, bool with_P) {
  constexpr int kParts = kSplit ? 2 : 1, kP = kRows * 128, kVectors = kVectorCount * kChunk * 4;
  barrier_expect(barrier, (kSplit ? 3 : 1) * kTileBytes + (with_P ? kParts * kP : 0) + kVectors);
  bring(barrier, stage + Places::T, w.T + at * kChunk * kChunk, kTileBytes);
  bring(barrier, stage + vectors, w.vectors + at * kVectorCount * kChunk, kVectors);
  if constexpr (kSplit)
    bring(barrier, stage + Places::T_lo, w.T_lo + at * 2 * kChunk * kChunk, 2 * kTileBytes);
  if constexpr (kRows > 0) {
    if (!with_P) return;
    bring(barrier, stage + Places::P, w.P + at * kRows * kChunk, kP);
    if constexpr (kSplit) bring(barrier, stage + Places::P_lo, w.P_lo + at * kRows * kChunk, kP);
  }
}

// The fetching group gives its registers to those that compute (setmaxnreg), more of them where
// operands are split, fewer where it has products to make itself.
template <bool kSplit, bool kProducts = false> __device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kSplit ? 24 : kProducts ? 88 : 40));
}
template <bool kSplit, bool kProducts = false> __device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kSplit ? 240 : kProducts ? 208 : 232));
}

// The chunks of a sequence that a block walks: all, or those of a segment. Segments of all
// sequences are numbered through, those of packed ones as chunks are (chunk_slots); the others in
// the order of `segment`, so that blocks of the first or the last ones come first.
struct Stretch {
  int64_t s, h, slot;
  int segment, begin, end;
  bool last;

  __device__ Stretch(const DeltaProductInputs& p, const Segments& segments, unsigned block,
                     bool backwards = false)
      : h(block % unsigned(p.H)) {
    const unsigned i = block / unsigned(p.H);
    if (segments.chunks == 0) {
      s = i, segment = 0;
    } else if (p.cu_seqlens) {
      const int64_t steps = int64_t(segments.chunks) * kChunk;
      const Slot z = slot_of(p, i, steps);
      s = z.s, segment = int(z.first / steps);
    } else {
      s = i % unsigned(p.S), segment = int(i / unsigned(p.S));
      if (backwards) segment = segments.count - 1 - segment;
    }
    const int all = int((span_of(p, s).length * p.N + kChunk - 1) / kChunk);
    begin = segment == 0 ? 0 : segments.first + (segment - 1) * segments.chunks, end = all;
    if (segments.chunks > 0)
      end = min(all, segment == 0 ? segments.first : begin + segments.chunks);
    last = end == all;
    slot = p.cu_seqlens ? int64_t(i) : s * segments.count + segment;
  }
  // A slot that packed sequences leave unused. A sequence of no tokens has a segment.
  __device__ bool empty() const { return segment > 0 && begin >= end; }
  __device__ bool first() const { return segment == 0; }
  // In arrays [slots,H,...]; the next segment is H further.
  __device__ int64_t at(const DeltaProductInputs& p) const { return slot * p.H + h; }
};

// Columns a block takes: all it can, or fewer where that fills the chip.
inline int columns_of(int64_t V, int64_t blocks_per_128) {
  return V % 128 == 0 && 2 * blocks_per_128 > chip().processors ? 128 : 64;
}

// f(element, its key, its column) for what a thread has of a state: rows v and v + 8 of its
// transpose.
template <class State, class F>
__device__ __forceinline__ void each_of_state(State& S, int64_t v, F f) {
#pragma unroll
  for (int t = 0; t < int(sizeof(S) / sizeof(S[0])); ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u)
      f(S[t][u], int64_t(t * 8 + threadIdx.x % 4 * 2 + u % 2), v + u / 2 * 8);
}
// The unit matrix as a state whose columns begin at v.
template <int kTiles>
__device__ __forceinline__ void unit_state(float (&S)[kTiles][4], int64_t K, int64_t v) {
  each_of_state(S, v,
                [&](float& x, int64_t k, int64_t column) { x = k == column && k < K ? 1.f : 0.f; });
}
// A state [K,V] in float32.
template <int kTiles>
__device__ __forceinline__ void read_state(float (&S)[kTiles][4], const float* from, int64_t K,
                                           int64_t V, int64_t v) {
  each_of_state(S, v, [&](float& x, int64_t k, int64_t column) {
    x = from && k < K ? from[k * V + column] : 0.f;
  });
}
template <int kTiles>
__device__ __forceinline__ void write_state(const float (&S)[kTiles][4], float* to, int64_t K,
                                            int64_t V, int64_t v) {
  each_of_state(S, v, [&](float x, int64_t k, int64_t column) {
    if (k < K) to[k * V + column] = x;
  });
}
// What a warp group has of a state, 64 columns, in the order of its registers: between kernels that
// keep it alike. `to`: of the padded state [64 or 128, V].
template <int kTiles>
__device__ __forceinline__ float4* place_between(float* state, int64_t v_tile) {
  return reinterpret_cast<float4*>(state + (v_tile / 64 + threadIdx.x / 128) * kTiles * 512) +
         threadIdx.x % 128;
}
template <int kTiles>
__device__ __forceinline__ void put_between(const float (&S)[kTiles][4], float4* to) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t) to[t * 128] = make_float4(S[t][0], S[t][1], S[t][2], S[t][3]);
}
template <int kTiles>
__device__ __forceinline__ void get_between(float (&S)[kTiles][4], const float4* from) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    const float4 x = from[t * 128];
    S[t][0] = x.x, S[t][1] = x.y, S[t][2] = x.z, S[t][3] = x.w;
  }
}
// The 128 threads of a warp group.
__device__ __forceinline__ void meet_group() {
  asm volatile("bar.sync %0, 128;\n" ::"r"(1 + threadIdx.x / 128) : "memory");
}

// The operand of a state in shared memory, swizzled: the warp's 16 rows of every 64 keys.
template <int kPart = 0, int kParts, int kSteps>
__device__ __forceinline__ void put_state(const Fragment<kParts> (&a)[kSteps], uint32_t scratch) {
  const int lane = threadIdx.x % 32, row = lane % 16;
#pragma unroll
  for (int k = 0; k < kSteps; ++k)
    stmatrix(scratch + k / 4 * 16 * 128 + row * 128 + (((k % 4 * 2 + lane / 16) ^ row) & 7) * 16,
             a[k].part[kPart]);
  wgmma::publish();
  __syncwarp();
}
// And from there to memory: `to` is row v0 of the warp's 16 in the first 64 keys.
template <int kPart = 0, int kParts, int kSteps>
__device__ __forceinline__ void send_state(const Fragment<kParts> (&a)[kSteps], uint16_t* to,
                                           int64_t V, uint32_t scratch) {
  const int lane = threadIdx.x % 32;
  put_state<kPart>(a, scratch);
  if (lane < kSteps / 4) send(to + lane * V * 64, scratch + lane * 16 * 128, 16 * 128);
}

// A chunk: micro-steps first .. first+count-1 of a sequence and a head h. `item` counts chunks of
// heads, `head` heads of sequences.
struct GradientPlace {
  Span span;
  int64_t first;
  int count;
  int64_t h, item, head;
};
// Where the rows of the gradient of the state after a chunk lie (StateGradients in chunk.h). Of the
// state in memory, [KT / 64, V, 64], row n is the n-th KT values.
template <int KT> class GradientRows {
 public:
  __device__ __forceinline__ GradientRows(const DeltaProductBackward& p, const StateGradients& at,
                                          const GradientPlace& z)
      : in_dk_(at.in_dk),
        lent_(at.in_dk + at.in_dq),
        own_(at.chunks + z.item * (p.V - lent_) * KT) {
    if (z.count < kChunk) {
      dk_ = at.ends + z.head * lent_ * KT, dk_step_ = KT;
      dq_ = dk_ + in_dk_ * KT, dq_step_ = KT;
    } else {
      dk_ = static_cast<uint16_t*>(p.dk.data) + row_at(p.dk, z.span.b, z.span.t0, 0, z.h) +
            z.first * p.dk.step;
      dk_step_ = p.dk.step;
      const int64_t token = p.N == 1 ? z.first : uint32_t(z.first) / uint32_t(p.N);
      dq_ = static_cast<uint16_t*>(p.dq.data) + row_at(p.dq, z.span.b, z.span.t0 + token, 0, z.h);
      dq_step_ = p.dq.token;
    }
  }
  __device__ __forceinline__ uint16_t* at(int n) const {
    return n < in_dk_  ? dk_ + n * dk_step_
           : n < lent_ ? dq_ + (n - in_dk_) * dq_step_
                       : own_ + int64_t(n - lent_) * KT;
  }
  // Values from row n to the next, if it lies in the same place.
  __device__ __forceinline__ int64_t step(int n) const {
    return n < in_dk_ ? dk_step_ : n < lent_ ? dq_step_ : KT;
  }
  // Whether rows n to n + count - 1 are a whole number of rows of dk, or of dq, or of the others.
  __device__ __forceinline__ bool together(int n, int count) const {
    return n + count <= in_dk_ || (n >= in_dk_ && n + count <= lent_) || n >= lent_;
  }

 private:
  int in_dk_, lent_;
  uint16_t *dk_, *dq_, *own_;
  int64_t dk_step_, dq_step_;
};

__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}
// Where piece `piece` (16 bytes) of a row lies in a swizzled tile.
__device__ __forceinline__ uint32_t swizzled(int row, int piece) {
  return row * 128 + ((piece ^ row) & 7) * 16;
}
// Results that leave as boxes of 64 channels and `rows` rows (tensor_map.cuh), or row by row where
// a box would not do.
struct Boxes {
  CUtensorMap map;
  int rows = 0;  // none: the copy engine does not take such strides
};
inline Boxes boxes_of(const DeltaProductInputs& p, const Rows& x, int64_t channels, bool tokens) {
  Boxes boxes;
  const int rows = !tokens || p.N == 1                  ? kChunk
                   : p.N <= kChunk && kChunk % p.N == 0 ? int(kChunk / p.N)
                                                        : 0;
  const MappedRows of{x.data, channels, tokens ? p.T : p.T * p.N,
                      p.H,    p.B,      tokens ? x.token : x.step,
                      x.head, x.batch};
  if (x.data && rows > 0 && make_map(boxes.map, of, rows)) boxes.rows = rows;
  return boxes;
}
// 64 columns of this warp group in a swizzled tile.
template <int kSteps>
__device__ __forceinline__ void put_tile(const Fragment<1> (&x)[kSteps], uint32_t tile) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const uint32_t at = tile + swizzled(lane % 8 + lane / 16 * 8, 2 * warp + lane / 8 % 2);
#pragma unroll
  for (int t = 0; t < kSteps; ++t) stmatrix_transposed(at + t * 16 * 128, x[t].part[0]);
}
// Rows first .. first+rows-1 of a tile's 64 channels.
struct TileRows {
  int64_t batch, first, head, channel;
  int rows;
  bool packed;
};
// That tile to rows of x that lie `step` apart: one thread sends a box, or all of the group store.
// What lies behind the last row of a sequence that is not packed is outside.
__device__ __forceinline__ void send_tile(const Boxes& boxes, const Rows& x, int64_t step,
                                          uint32_t tile, const TileRows& of) {
  if (boxes.rows > 0 && (of.rows == boxes.rows || !of.packed)) {
    if (threadIdx.x % 128 == 0)
      send_box(boxes.map, tile, int(of.channel), int(of.first), int(of.head), int(of.batch));
    return;
  }
  auto* const to = static_cast<uint16_t*>(x.data) + of.batch * x.batch + of.first * step +
                   of.head * x.head + of.channel;
#pragma unroll 1
  for (int at = threadIdx.x % 128; at < of.rows * 8; at += 128) {
    uint4 y;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(y.x), "=r"(y.y), "=r"(y.z), "=r"(y.w)
                 : "r"(tile + swizzled(at / 8, at % 8)));
    *reinterpret_cast<uint4*>(to + at / 8 * step + at % 8 * 8) = y;
  }
}

// Columns of C tiles as rows of bfloat16, or as what rounding to that leaves over, in this warp's
// 16 columns of a tile [8 kTiles, 64].
template <bool kLo, int kTiles>
__device__ __forceinline__ void put_columns(const float (&x)[kTiles][4], uint32_t tile) {
  const uint32_t at = tile + lane_direct(row_bytes(64)) + threadIdx.x / 32 % 4 * 32;
#pragma unroll
  for (int n = 0; n < kTiles / 2; ++n) {
    const auto f = as_fragment < kLo ? 2 : 1 > (x[2 * n], x[2 * n + 1]);
    stmatrix_transposed(at + n * 16 * row_bytes(64), f.part[kLo ? 1 : 0]);
  }
}
// The first `rows` rows of that tile, `step` apart, by the threads of a warp group. The copy engine
// takes those of a warp one after the other, so each warp has its share, one half of its lanes.
__device__ __forceinline__ void send_rows(uint16_t* to, int64_t step, uint32_t tile, int rows) {
  const int i = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32;
  if (threadIdx.x % 32 < 16 && i < rows) send(to + i * step, tile + i * row_bytes(64), 128);
}

}  // namespace lrnn::kernels::cuda
