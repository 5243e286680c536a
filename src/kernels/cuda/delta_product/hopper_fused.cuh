#pragma once
#include "kernels/cuda/delta_product/hopper_squares.cuh"
#include "kernels/cuda/tile/tensor_map.cuh"

// What the groups of the forward pass in one kernel (hopper_fused.cu) share: who does what, what
// lies where in shared memory, and the barriers where they meet.
namespace lrnn::kernels::cuda::fused {

using namespace squares;

// Two groups follow the state, 64 columns each, one prepares T and P, and the warps of the
// last bring keys and queries, scalars, values, and send results.
enum Role { kWalkers = 2, kPreparer = 2, kFetcher = 3, kThreads = 512 };
enum FetchingWarp { kRowWarp, kScalarWarp, kValueWarp, kSendingWarp };
// Registers a thread; together no more than 128 each.
constexpr int kWalkerRegisters = 192, kPreparerRegisters = 104, kFetcherRegisters = 24;

// Chunks of which keys, queries, values are in shared memory at once. Keys are the first needed and
// the last.
constexpr int kKeySlots = 4, kQuerySlots = 3, kValueSlots = 2, kSquareSlots = 2;

// Vectors of a chunk (chunk.cuh). In place of the gates there are the logarithms, to base 2, of the
// decays up to each micro-step, and behind them what is left of it at the end of its block of 16.
constexpr int kLog = kGate, kLeft = kVectorCount, kVectors = kVectorCount + 1;

// Bytes in shared memory.
struct Places {
  static constexpr int k = 0, q = k + kKeySlots * 2 * kTileBytes,
                       v = q + kQuerySlots * 2 * kTileBytes, T = v + kValueSlots * 2 * kTileBytes,
                       P = T + kSquareSlots * kTileBytes, o = P + kSquareSlots * kTileBytes,
                       blocks = o + kWalkers * kTileBytes, diagonals = blocks + 2 * kBlocksBytes,
                       vectors = diagonals + kDiagonalBytes,
                       barriers = vectors + kKeySlots * kVectors * kChunk * 4, all = barriers + 256;
  static_assert(all <= kMostShared);
  static __device__ __forceinline__ float* vectors_of(unsigned char* memory, int n) {
    return reinterpret_cast<float*>(memory + vectors) + n % kKeySlots * kVectors * kChunk;
  }
};

// Slots that are filled and emptied in turn. n counts chunks of this block.
template <int kSlots> class Ring {
 public:
  static constexpr int kBytes = kSlots * 16;
  __device__ explicit Ring(uint32_t at) : at_(at) {}
  __device__ void init(int fillers, int users) const {
    for (int i = 0; i < kSlots; ++i)
      barrier_init(at_ + i * 16, fillers), barrier_init(at_ + i * 16 + 8, users);
  }
  static __device__ __forceinline__ int slot(int n) { return kSlots == 1 ? 0 : n % kSlots; }
  __device__ __forceinline__ uint32_t filling(int n) const { return at_ + slot(n) * 16; }
  __device__ __forceinline__ void wait_filled(int n) const {
    barrier_wait(filling(n), n / kSlots % 2);
  }
  __device__ __forceinline__ void wait_free(int n) const {
    if (n >= kSlots) barrier_wait(filling(n) + 8, (n / kSlots - 1) % 2);
  }
  // By all lanes of a warp: it has read what it needs.
  __device__ __forceinline__ void free(int n) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(filling(n) + 8);
  }
  // By all lanes of a warp: what they wrote is there, also for the products.
  __device__ __forceinline__ void filled(int n) const {
    wgmma::publish();
    __syncwarp();
    if (threadIdx.x % 32 == 0 && n >= 0) barrier_arrive(filling(n));
  }

 private:
  uint32_t at_;
};

struct Barriers {
  Ring<kKeySlots> keys;  // and vectors
  Ring<kQuerySlots> queries;
  Ring<kValueSlots> values;
  Ring<kSquareSlots> squares;  // T and P
  uint32_t outputs;            // of the two walkers
  uint32_t blocks;             // of L and D of a chunk

  // Called by all.
  __device__ explicit Barriers(uint32_t at)
      : keys(at),
        queries(at + 64),
        values(at + 112),
        squares(at + 160),
        outputs(at + 192),
        blocks(at + 224) {
    static_assert(kKeySlots * 16 <= 64 && kQuerySlots * 16 <= 48 && kValueSlots * 16 <= 48);
    if (threadIdx.x == 0) {
      keys.init(1 + 1, 4 * kWalkers + 4);
      queries.init(1, 4 * kWalkers + 4);
      values.init(1, 4 * kWalkers);
      squares.init(4, 4 * kWalkers);
      for (int group = 0; group < kWalkers; ++group) results(group).init(4, 1);
      barrier_init(blocks, 4);
      wgmma::publish();
    }
    __syncthreads();
  }
  __device__ __forceinline__ Ring<1> results(int group) const {
    return Ring<1>(outputs + group * 16);
  }
};

// Rows of queries of a chunk. One token, one micro-step: kOne.
template <bool kOne> struct Reading {
  int token, place, every, rows;
  __device__ __forceinline__ Reading(const DeltaProductInputs& p, int first, int count)
      : token(kOne ? first : int(uint32_t(first) / uint32_t(p.N))),
        place(kOne ? 0 : int(p.N) - 1 - (first - token * int(p.N))),
        every(kOne ? 1 : int(p.N)),
        rows(kOne            ? count
             : place < count ? (count - 1 - place) / every + 1
                             : 0) {}
  // The last micro-step that row r sees, or -1.
  __device__ __forceinline__ int last(int r) const { return r < rows ? place + r * every : -1; }
};

// The sequence and head that a block follows.
struct Sequence {
  const DeltaProductForward& p;
  const int64_t s = blockIdx.x / unsigned(p.H), h = blockIdx.x % unsigned(p.H);
  const Span span = span_of(p, s);
  const int steps = int(span.length * p.N), chunks = (steps + kChunk - 1) / kChunk;
  const int first_step = int(span.t0 * p.N);  // in the tensors
  __device__ __forceinline__ int count(int n) const { return min(kChunk, steps - n * kChunk); }
  __device__ __forceinline__ int key_head(const SharedRows& x) const {
    return int(__umulhi(2 * uint32_t(h) + 1, x.inverse));
  }
};

}  // namespace lrnn::kernels::cuda::fused
