#pragma once
#include "kernels/cuda/delta_product/decays.cuh"
#include "kernels/cuda/delta_product/hopper.cuh"

// What hopper_gradients.cu needs of a chunk: where it lies, in memory and in shared memory, how it
// gets there, and sums over its value channels.
namespace lrnn::kernels::cuda::gradients {

constexpr int kThreads = 256;

// What each micro-step of a chunk adds to the gradients of the gates up to it: across chunks,
// within this one, and by the query that reads after it; and <G, S> at its end, every warp eight
// shares.
struct alignas(16) Slopes {
  float across[kChunk], within[kChunk], queries[kChunk], ends[kThreads / 4];
  Span span;
  Slot at;
  int64_t h;
};

// Bytes in shared memory; keys, vectors and slopes twice. In split mode the lo half of
// a matrix follows it.
template <int KT, int VT, bool kSplit, bool kGated> struct Layout {
  static constexpr int kParts = kSplit ? 2 : 1, kBlock = KT / 64 * kTileBytes, kKeys = 2 * kBlock,
                       kValues = VT / 64 * kTileBytes, kState = VT * KT * 2,
                       kVectors = kVectorCount * kChunk * 4;
  static constexpr int X = 2 * kKeys, E = X + kParts * kTileBytes, d_o = E + kParts * kTileBytes,
                       dv = d_o + kValues, e = dv + kParts * kValues, S = e + kParts * kValues,
                       G = S + kParts * kState, vectors = G + kParts * kState,
                       slopes = vectors + 2 * kVectors;
  static constexpr int kScratch = kSplit ? 0 : 16 * row_bytes(32);  // of a warp, for its results
  static constexpr int decay = slopes + (kGated ? 2 * int(sizeof(Slopes)) : 0),
                       scratch = decay + (kGated ? int(sizeof(Decays)) : 0),
                       barrier = scratch + kThreads / 32 * kScratch, bytes = barrier + 8;
};

// Where columns 8t+2c, +1 of a row lie in swizzled tiles.
__device__ __forceinline__ int place_of(int row, int t) {
  return t / 8 * kTileBytes + row * 128 + ((t ^ row) & 7) * 16 + threadIdx.x % 4 * 4;
}
// Where this lane points ldmatrix for 16 rows of swizzled tiles, their columns 16 n on, as an
// operand A(m,k) or B(k,m) = M[m][k].
__device__ __forceinline__ uint32_t rows_place(uint32_t tiles, int row0, int n) {
  const int lane = threadIdx.x % 32, row = row0 + lane % 16, piece = n % 4 * 2 + lane / 16;
  return tiles + n / 4 * kTileBytes + row * 128 + ((piece ^ row) & 7) * 16;
}
// The same transposed, A(m,k) = M[16 n + k][column0 + m].
__device__ __forceinline__ uint32_t columns_place(uint32_t tile, int column0, int n) {
  const int lane = threadIdx.x % 32, row = n * 16 + lane % 8 + lane / 16 * 8,
            piece = column0 / 8 + lane / 8 % 2;
  return tile + row * 128 + ((piece ^ row) & 7) * 16;
}

// Dots of a warp's 16 rows with 16 others, each with its own, as the diagonal of a product.
struct Diagonal {
  float upper[4] = {}, lower[4] = {};
  __device__ __forceinline__ void add(const uint32_t (&x)[4], const uint32_t (&y)[4]) {
    mma(upper, x, y[0], y[2]);
    mma(lower, x, y[1], y[3]);
  }
  // Every fourth lane has two of them, rows g and g + 8.
  static __device__ __forceinline__ bool here() { return threadIdx.x / 8 % 4 == threadIdx.x % 4; }
  __device__ __forceinline__ float2 rows() const {
    return threadIdx.x & 4 ? make_float2(upper[1], lower[3]) : make_float2(upper[0], lower[2]);
  }
};

// Row `row` of tiles with the same of swizzled ones.
template <int kTiles>
__device__ __forceinline__ float row_dot(const float (&acc)[kTiles][4], int half, int row,
                                         const unsigned char* tiles) {
  return cuda::row_dot(acc, half, [&](int t) {
    return *reinterpret_cast<const uint32_t*>(tiles + place_of(row, t));
  });
}

// The same for the difference of two.
template <int kTiles>
__device__ __forceinline__ float row_dot(const float (&acc)[kTiles][4],
                                         const float (&less)[kTiles][4], int half, int row,
                                         const unsigned char* tiles) {
  float sum = 0;
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    const uint32_t x = *reinterpret_cast<const uint32_t*>(tiles + place_of(row, t));
    sum += (acc[t][2 * half] - less[t][2 * half]) * low_of(x) +
           (acc[t][2 * half + 1] - less[t][2 * half + 1]) * high_of(x);
  }
  return sum_lanes<4>(sum);
}

__device__ __forceinline__ uint4 load_piece(uint32_t from) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(from)
               : "memory");
  return x;
}
// The warp's 16 rows, `rows` of them inside, through its scratch in shared memory, 32 columns at a
// time: stores of four bytes a lane take twice as many turns of the memory unit.
template <int kTiles>
__device__ __forceinline__ void store_own(const float (&acc)[kTiles][4], uint32_t scratch,
                                          uint16_t* to, int64_t step, int rows, int64_t K) {
  const int lane = threadIdx.x % 32, row = lane / 4, piece = lane % 4;
  const uint32_t put = scratch + lane_transposed(row_bytes(32)),
                 get = scratch + row * row_bytes(32) + piece * 16;
  to += row * step + piece * 8;
#pragma unroll
  for (int t = 0; t < kTiles; t += 4) {
    const auto left = as_fragment<1>(acc[t], acc[t + 1]),
               right = as_fragment<1>(acc[t + 2], acc[t + 3]);
    __syncwarp();  // what lay there has been read
    stmatrix(put, left.part[0]);
    stmatrix(put + 32, right.part[0]);
    __syncwarp();
    const uint4 upper = load_piece(get), lower = load_piece(get + 8 * row_bytes(32));
    if (t * 8 + piece * 8 >= K) continue;
    if (row < rows) *reinterpret_cast<uint4*>(to + t * 8) = upper;
    if (row + 8 < rows) *reinterpret_cast<uint4*>(to + 8 * step + t * 8) = lower;
  }
}
template <int kTiles>
__device__ __forceinline__ void store_row(const float (&acc)[kTiles][4], int half, uint16_t* row,
                                          int64_t K) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
    if (t * 8 < K)
      *reinterpret_cast<uint32_t*>(row + t * 8 + threadIdx.x % 4 * 2) =
          pack(acc[t][2 * half], acc[t][2 * half + 1]);
}

// acc += A B, or acc = A B for kFirst, over `columns` value channels: A rows of values, B a state
// [V,K].
template <bool kFirst, int kTiles>
__device__ __forceinline__ void over_state(float (&acc)[kTiles][4], uint32_t a, uint32_t b,
                                           int columns) {
#pragma unroll
  for (int v = 0; v < columns; v += 16) {
    const uint64_t left = wgmma::rows_as_n(a + v / 64 * kTileBytes) + v % 64 / 8,
                   right = wgmma::rows_as_k(b + v * 128, columns * 128);
    if (kFirst && v == 0)
      wgmma::multiply<false, true, true>(acc, left, right);
    else
      wgmma::multiply<false, true, false>(acc, left, right);
  }
}

__device__ __forceinline__ void meet() { asm volatile("bar.sync 1, 256;\n" ::: "memory"); }

// What both groups see of their chunk. kOne: it has one tile of values.
template <int KT, int VT, bool kSplit, bool kOne, bool kGated> struct Chunk {
  using Places = Layout<KT, VT, kSplit, kGated>;
  static constexpr Places layout{};
  static constexpr bool kSplits = kSplit, kHasGate = kGated;
  const DeltaProductBackward& p;
  const StateGradients& dstates;
  unsigned char* memory;
  unsigned item;
  int buffer;
  const int64_t h = item % unsigned(p.H), head = item;
  const Slot at = slot_of(p, item / unsigned(p.H), kChunk);
  const Span span = span_of(p, at.s);
  const Queries queries{p, at.first, at.count};
  // In shared memory.
  const uint32_t base = __shfl_sync(0xffffffffu, shared_address(memory), 0),
                 k = base + buffer * Places::kKeys, q = k + Places::kBlock;

  __device__ const float* vector(Vector which) const {
    return reinterpret_cast<const float*>(memory + layout.vectors + buffer * Places::kVectors) +
           which * kChunk;
  }
  __device__ const unsigned char* k_tiles() const { return memory + (k - base); }
  __device__ const unsigned char* q_tiles() const { return memory + (q - base); }
  __device__ uint32_t scratch() const {
    return base + layout.scratch + threadIdx.x / 32 * Places::kScratch;
  }
  __device__ uint32_t barrier() const { return base + layout.barrier; }  // for the states
  __device__ Slopes& slopes(int of) const {
    return reinterpret_cast<Slopes*>(memory + layout.slopes)[of];
  }
  __device__ Slopes& slopes() const { return slopes(buffer); }
  __device__ Decays& decays() const { return *reinterpret_cast<Decays*>(memory + layout.decay); }
  template <class R> __device__ int64_t query_row(const R& x) const {
    return row_at(x, span.b, span.t0 + queries.token, 0, h);
  }
  template <class R> __device__ int64_t step_row(const R& x) const {
    return row_at(x, span.b, span.t0, 0, h) + at.first * x.step;
  }

  __device__ void fetch_keys(const ChunkWork& w) const {
    fetch_vectors(base + layout.vectors + buffer * Places::kVectors,
                  w.vectors + head * kVectorCount * kChunk);
    fetch_tiles<KT, kChunk, kThreads>(threadIdx.x, k,
                                      static_cast<const uint16_t*>(p.k.data) + step_row(p.k),
                                      p.k.step, at.count, int(p.K));
    if (p.q.data)
      fetch_tiles<KT, kChunk, kThreads>(threadIdx.x, q,
                                        static_cast<const uint16_t*>(p.q.data) + query_row(p.q),
                                        p.q.token, queries.rows, int(p.K));
  }
  __device__ void fetch_values(const ChunkWork& w, int v0) const {
    if (p.q.data)
      fetch_tiles<VT, kChunk, kThreads>(
          threadIdx.x, base + layout.d_o,
          static_cast<const uint16_t*>(p.d_o.data) + query_row(p.d_o) + v0, p.d_o.token,
          queries.rows, VT);
    fetch_tiles<VT, kChunk, kThreads>(threadIdx.x, base + layout.dv,
                                      static_cast<const uint16_t*>(p.dv.data) + step_row(p.dv) + v0,
                                      p.dv.step, at.count, VT);
    const int64_t row = (((span.b * p.H + h) * p.T + span.t0) * p.N + at.first) * p.V + v0;
    const auto fetch_errors = [&](int to, const uint16_t* from) {
      fetch_tiles<VT, kChunk, kThreads>(threadIdx.x, base + to, from + row, p.V, at.count, VT);
    };
    const auto fetch_state = [&](int to, const uint16_t* from) {
#pragma unroll
      for (int k = 0; k < KT / 64; ++k)
        bring(barrier(), base + to + k * VT * 128, from + head * p.V * KT + (k * p.V + v0) * 64,
              VT * 128);
    };
    fetch_errors(layout.e, static_cast<const uint16_t*>(p.error));
    if constexpr (kSplit) {
      fetch_errors(layout.dv + Places::kValues, w.dv_lo);
      fetch_errors(layout.e + Places::kValues, w.error_lo);
    }
    if (threadIdx.x == 0) {
      barrier_expect(barrier(), (kSplit ? 4 : 1) * Places::kState);
      fetch_state(layout.S, static_cast<const uint16_t*>(p.states));
      if constexpr (kSplit) {
        fetch_state(layout.G, dstates.chunks);
        fetch_state(layout.S + Places::kState, w.states_lo);
        fetch_state(layout.G + Places::kState, w.dstates_lo);
      }
    }
    if (!kSplit && threadIdx.x < kThreads / 2) fetch_gradient(v0);
  }
  // The gradient of the state, whose rows lie apart, by the group that has less to do. For the copy
  // engine, which takes the rows of a warp one after the other, there are too many.
  __device__ __forceinline__ void fetch_gradient(int v0) const {
    constexpr int kPieces = KT / 8, kPass = kThreads / 2 / kPieces,
                  kRun = VT * 64 / KT < kChunk ? VT * 64 / KT : kChunk;
    const GradientRows<KT> rows(p, dstates, {span, at.first, at.count, h, head, at.s * p.H + h});
    const int piece = threadIdx.x % kPieces, own = threadIdx.x / kPieces;
#pragma unroll
    for (int n = 0; n < VT; n += kRun) {
      constexpr int kEach = VT * 64 / KT;  // rows with 64 keys
      const int row = n / kEach * int(p.V * 64 / KT) + v0 * 64 / KT + n % kEach;
      const uint32_t to = base + layout.G + (n + own) * KT * 2 + piece * 16;
      if (rows.together(row, kRun)) {
        fetch_pieces<kRun / kPass, kPass * KT * 2>(to, rows.at(row + own) + piece * 8,
                                                   rows.step(row) * kPass, kRun / kPass);
      } else {
#pragma unroll 1
        for (int i = 0; i < kRun; i += kPass)
          copy_async(to + i * KT * 2, rows.at(row + own + i) + piece * 8);
      }
    }
  }
  // acc += A B for values A and values or a state B, with what rounding left of either.
  template <bool kSplitA, int kTiles>
  __device__ __forceinline__ void values_values(float (&acc)[kTiles][4], int a, int b) const {
    rows_by_rows<kOne, VT>(acc, base + a, base + b);
    if constexpr (kSplit && kSplitA)
      rows_by_rows<false, VT>(acc, base + a + Places::kValues, base + b);
    if constexpr (kSplit) rows_by_rows<false, VT>(acc, base + a, base + b + Places::kValues);
  }
  template <bool kSplitA, int kTiles>
  __device__ __forceinline__ void values_state(float (&acc)[kTiles][4], int a, int b) const {
    over_state<kOne>(acc, base + a, base + b, VT);
    if constexpr (kSplit && kSplitA)
      over_state<false>(acc, base + a + Places::kValues, base + b, VT);
    if constexpr (kSplit) over_state<false>(acc, base + a, base + b + Places::kState, VT);
  }
  // For every tile of values: issue() starts the products, finish() waits for them. Then the tile
  // makes room for the next one, or for that of the next chunk, which next() asks for.
  template <class Issue, class Finish, class Next>
  __device__ __forceinline__ void each_tile(const ChunkWork& w, Issue&& issue, Finish&& finish,
                                            Next&& next) const {
    for (int v0 = 0; v0 < (kOne ? VT : p.V); v0 += VT) {
      copy_wait<0>();
      wgmma::publish();
      barrier_wait(barrier(), (buffer * int(p.V / VT) + v0 / VT) & 1);
      meet();
      wgmma::fence();
      issue();
      wgmma::commit();
      finish();
      meet();
      if (!kOne && v0 + VT < p.V)
        fetch_values(w, v0 + VT);
      else
        next();
      copy_commit();
    }
  }
  // <G, S>, each thread its share: dots of rows of 16 keys of one with those of the other.
  __device__ float both_ends() const {
    // The warps share the blocks of 16 keys, and of values where there are more warps than those.
    constexpr int kAcross = KT / 16, kDown = kThreads / 32 / kAcross;
    static_assert(kDown * kAcross * 32 == kThreads && VT % (16 * kDown) == 0);
    const int l = threadIdx.x % 32, warp = threadIdx.x / 32, v = warp / kAcross * 16 + l % 16,
              piece = warp % kAcross * 2 + l / 16;
    const uint32_t place = base + piece / 8 * VT * 128 + v * 128 + ((piece ^ v) & 7) * 16;
    const auto read = [&](uint32_t(&x)[4], int state, int n) {
      ldmatrix(x, place + state + n * kDown * 16 * 128);
    };
    Diagonal dots;
#pragma unroll
    for (int n = 0; n < VT / 16 / kDown; ++n) {
      uint32_t x[4], y[4];
      read(x, layout.S, n);
      read(y, layout.G, n);
      dots.add(x, y);
      if constexpr (kSplit) {
        uint32_t z[4];
        read(z, layout.S + Places::kState, n);
        dots.add(z, y);
        read(z, layout.G + Places::kState, n);
        dots.add(x, z);
      }
    }
    if (!Diagonal::here()) return 0;
    return vector(kBefore)[kChunk - 1] * (dots.rows().x + dots.rows().y);
  }
};

}  // namespace lrnn::kernels::cuda::gradients
