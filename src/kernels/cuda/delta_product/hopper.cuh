#pragma once
#include "kernels/cuda/delta_product/chunk.cuh"
#include "kernels/cuda/tile/wgmma.cuh"

// What the Hopper sweeps share. A warp group keeps 64 columns of the state as rows of its
// transpose.
namespace lrnn::kernels::cuda {

constexpr int kTileBytes = kChunk * 128;  // 64 rows of 64 values
constexpr int kMapBlocks = 3;             // of hopper_map.cu that a processor has room for

// Asks for rows as swizzled tiles of 64 columns, `kRows` rows each; outside, zeros. The kTeam
// threads that share the work pass over the rows a multiple of eight at a time, so each keeps its
// place in the swizzle.
template <int kColumns, int kRows, int kTeam>
__device__ __forceinline__ void fetch_tiles(int rank, uint32_t to, const uint16_t* from,
                                            int64_t step, int inside, int columns) {
  constexpr int kPieces = kColumns / 8, kPass = kTeam / kPieces;
  static_assert(kPass % 8 == 0 && kRows % kPass == 0);
  const int piece = rank % kPieces, first = rank / kPieces;
  fetch_pieces<kRows / kPass, kPass * 128>(
      to + piece / 8 * kRows * 128 + first * 128 + ((piece ^ first) & 7) * 16,
      from + first * step + piece * 8, step * kPass,
      piece * 8 < columns ? (inside - first + kPass - 1) / kPass : 0);
}

// --------------------------------------------------------------------------------- one after one
// Programmatic dependent launch (PDL): a kernel of several in a row starts while the last blocks of
// the one before still run, gets itself ready and then waits for all that those before wrote.
template <class... Parameters, class... Arguments>
void pdl_launch(void (*kernel)(Parameters...), dim3 blocks, int threads, int bytes,
                cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchAttribute early;
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks, config.blockDim = dim3(unsigned(threads));
  config.dynamicSmemBytes = size_t(bytes), config.stream = stream;
  config.attrs = &early, config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
  check_launch("delta_product");
}
// The next kernel may start. By all blocks, as early as they like.
__device__ __forceinline__ void pdl_trigger() {
  asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
}
// Before anything is read that the kernel before wrote, and before anything is written: that one
// may still read. By every thread that does either.
__device__ __forceinline__ void pdl_wait() { asm volatile("griddepcontrol.wait;\n" ::: "memory"); }

// ------------------------------------------------------------------------------------- barriers
// Barriers in shared memory (mbarrier): threads arrive, and bytes that the copy engine (TMA) was to
// bring.
__device__ __forceinline__ void barrier_init(uint32_t barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(count) : "memory");
}
__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}
// Arrives, and says how many bytes are to come.
__device__ __forceinline__ void barrier_expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void barrier_wait(uint32_t barrier, int parity) {
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
// A bulk copy: the copy engine brings one piece of memory, a multiple of 16 bytes.
__device__ __forceinline__ void bring(uint32_t barrier, uint32_t to, const void* from, int bytes) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];\n" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

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
template <class Places, int kRows, bool kSplit, class Stages>
__device__ __forceinline__ void bring_chunk(const Stages& pipeline, int n, uint32_t stage,
                                            int vectors, const ChunkWork& w, int64_t at,
                                            bool with_P) {
  constexpr int kParts = kSplit ? 2 : 1, kP = kRows * 128, kVectors = kVectorCount * kChunk * 4;
  const uint32_t barrier = pipeline.filling(n);
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
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kSplit ? 24 : kProducts ? 120 : 40));
}
template <bool kSplit, bool kProducts = false> __device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kSplit ? 240 : kProducts ? 192 : 232));
}

// The chunks of a sequence that a block walks.
struct Stretch {
  int64_t s, h;
  int segment, begin, end;
  __device__ Stretch(const DeltaProductInputs& p, const Segments& segments)
      : s(blockIdx.x / unsigned(p.H * segments.count)),
        h(blockIdx.x % unsigned(p.H)),
        segment(int(blockIdx.x / unsigned(p.H) % unsigned(segments.count))),
        begin(segment * segments.chunks),
        end(int((span_of(p, s).length * p.N + kChunk - 1) / kChunk)) {
    if (segments.count > 1) end = min(end, begin + segments.chunks);
  }
  // In arrays [S,H,count,...].
  __device__ int64_t at(const DeltaProductInputs& p, const Segments& segments) const {
    return (s * p.H + h) * segments.count + segment;
  }
};

// Columns a block takes: all it can, or fewer where that fills the chip.
inline int columns_of(int64_t V, int64_t blocks_per_128) {
  return V % 128 == 0 && 2 * blocks_per_128 > processors() ? 128 : 64;
}

// Columns 8t+2c, +1 of every tile times those of a vector.
template <int kTiles>
__device__ __forceinline__ void scale_columns(float (&x)[kTiles][4], const float* by) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    const float2 f = *reinterpret_cast<const float2*>(by + t * 8 + threadIdx.x % 4 * 2);
    x[t][0] *= f.x, x[t][1] *= f.y, x[t][2] *= f.x, x[t][3] *= f.y;
  }
}

// acc += A B for all k, or acc = A B for kFirst; the tiles of B follow each other, 64 values of k
// in each.
template <bool kFirst, int kBTiles, int kSteps, int kOut>
__device__ __forceinline__ void times_rows(float (&acc)[kOut][4], const uint32_t (&a)[kSteps][4],
                                           uint32_t b) {
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    const uint64_t at = wgmma::rows_as_n(b + k / 4 * kBTiles) + k % 4 * 2;
    if (kFirst && k == 0)
      wgmma::multiply<false, true>(acc, a[k], at);
    else
      wgmma::multiply<false, false>(acc, a[k], at);
  }
}
template <bool kFirst, int kSteps, int kOut>
__device__ __forceinline__ void times_columns(float (&acc)[kOut][4], const uint32_t (&a)[kSteps][4],
                                              uint32_t b, uint32_t wide) {
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    const uint64_t at = wgmma::rows_as_k(b + k * 16 * 128, wide);
    if (kFirst && k == 0)
      wgmma::multiply<true, true>(acc, a[k], at);
    else
      wgmma::multiply<true, false>(acc, a[k], at);
  }
}

template <bool kSplit, int kSteps>
__device__ __forceinline__ void as_operands(uint32_t (&hi)[kSteps][4], uint32_t (&lo)[kSteps][4],
                                            const float (&x)[2 * kSteps][4]) {
#pragma unroll
  for (int k = 0; k < kSteps; ++k) as_operand<kSplit>(hi[k], lo[k], x[2 * k], x[2 * k + 1]);
}

// Columns of K S become those of diag(beta) (V - diag(a) K S): V from rows of `row` bytes at
// `values`, or none.
template <bool kGate>
__device__ __forceinline__ void subtract_from_values(float (&R)[8][4], const float* vectors,
                                                     bool any, uint32_t values, int row) {
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    uint32_t v[4] = {};
    if (any) ldmatrix_transposed(v, values + n * 16 * row);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float(&x)[4] = R[2 * n + half];
      const int i = (2 * n + half) * 8 + 2 * (threadIdx.x % 4);
      const float2 beta = *reinterpret_cast<const float2*>(vectors + kBeta * kChunk + i);
      float2 before = make_float2(1, 1);
      if constexpr (kGate)
        before = *reinterpret_cast<const float2*>(vectors + kBefore * kChunk + i);
      x[0] = beta.x * (low_of(v[2 * half]) - before.x * x[0]);
      x[1] = beta.y * (high_of(v[2 * half]) - before.y * x[1]);
      x[2] = beta.x * (low_of(v[2 * half + 1]) - before.x * x[2]);
      x[3] = beta.y * (high_of(v[2 * half + 1]) - before.y * x[3]);
    }
  }
}
template <int kTiles> __device__ __forceinline__ void scale(float (&x)[kTiles][4], float by) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) x[t][u] *= by;
}
// The unit matrix as a state whose columns begin at v.
template <int kTiles>
__device__ __forceinline__ void unit_state(float (&S)[kTiles][4], int64_t K, int64_t v) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int64_t k = t * 8 + threadIdx.x % 4 * 2 + u % 2;
      S[t][u] = k == v + u / 2 * 8 && k < K ? 1.f : 0.f;
    }
}

// A state [K,V] in float32 to and from rows v0+g, v0+g+8 of its transpose.
template <int kTiles>
__device__ __forceinline__ void read_state(float (&S)[kTiles][4], const float* from, int64_t K,
                                           int64_t V, int64_t v) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int64_t k = t * 8 + threadIdx.x % 4 * 2 + u % 2;
      S[t][u] = from && k < K ? from[k * V + v + u / 2 * 8] : 0.f;
    }
}
template <int kTiles>
__device__ __forceinline__ void write_state(const float (&S)[kTiles][4], float* to, int64_t K,
                                            int64_t V, int64_t v) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int64_t k = t * 8 + threadIdx.x % 4 * 2 + u % 2;
      if (k < K) to[k * V + v + u / 2 * 8] = S[t][u];
    }
}
// --------------------------------------------------------------------------------------- stores
// Results leave through shared memory and the copy engine (TMA): stores of four bytes from every
// lane would fill the queue of the memory unit. A thread's copies are counted in groups, as they
// are issued.
__device__ __forceinline__ void stmatrix(uint32_t to, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};\n" ::"r"(to),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}
__device__ __forceinline__ void stmatrix_transposed(uint32_t to, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};\n" ::"r"(to),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}
__device__ __forceinline__ void send(void* to, uint32_t from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n" ::"l"(to), "r"(from),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void send_commit() {
  asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");
}
// All but the last kLeft groups of this thread have been read from shared memory.
template <int kLeft> __device__ __forceinline__ void send_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(kLeft) : "memory");
}
// The 128 threads of a warp group.
__device__ __forceinline__ void meet_group() {
  asm volatile("bar.sync %0, 128;\n" ::"r"(1 + threadIdx.x / 128) : "memory");
}

// The operand of a state in shared memory, swizzled: the warp's 16 rows of every 64 keys.
template <int kSteps>
__device__ __forceinline__ void put_state(const uint32_t (&a)[kSteps][4], uint32_t scratch) {
  const int lane = threadIdx.x % 32, row = lane % 16;
#pragma unroll
  for (int k = 0; k < kSteps; ++k)
    stmatrix(scratch + k / 4 * 16 * 128 + row * 128 + (((k % 4 * 2 + lane / 16) ^ row) & 7) * 16,
             a[k]);
  wgmma::publish();
  __syncwarp();
}
// And from there to memory: `to` is row v0 of the warp's 16 in the first 64 keys.
template <int kSteps>
__device__ __forceinline__ void send_state(const uint32_t (&a)[kSteps][4], uint16_t* to, int64_t V,
                                           uint32_t scratch) {
  const int lane = threadIdx.x % 32;
  put_state(a, scratch);
  if (lane < kSteps / 4) send(to + lane * V * 64, scratch + lane * 16 * 128, 16 * 128);
}

// Where the rows of the gradient of the state after a chunk lie (StateGradients in chunk.h). Of the
// state in memory, [KT / 64, V, 64], row n is the n-th KT values.
template <int KT> class GradientRows {
 public:
  // `item` counts chunks of heads, `head` heads of sequences; the chunk begins at micro-step
  // `first` of its sequence.
  __device__ __forceinline__ GradientRows(const DeltaProductBackward& p, const StateGradients& at,
                                          const Span& span, int64_t first, int count, int64_t h,
                                          int64_t item, int64_t head)
      : in_dk_(at.in_dk), lent_(at.in_dk + at.in_dq), own_(at.chunks + item * (p.V - lent_) * KT) {
    if (count < kChunk) {
      dk_ = at.ends + head * lent_ * KT, dk_step_ = KT;
      dq_ = dk_ + in_dk_ * KT, dq_step_ = KT;
    } else {
      dk_ = static_cast<uint16_t*>(p.dk.data) + row_at(p.dk, span.b, span.t0, 0, h) +
            first * p.dk.step;
      dk_step_ = p.dk.step;
      const int64_t token = p.N == 1 ? first : uint32_t(first) / uint32_t(p.N);
      dq_ = static_cast<uint16_t*>(p.dq.data) + row_at(p.dq, span.b, span.t0 + token, 0, h);
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

// Columns of C tiles as rows of bfloat16, or as what rounding to that leaves over, in this warp's
// 16 columns of a tile [8 kTiles, 64].
template <bool kLo, int kTiles>
__device__ __forceinline__ void put_columns(const float (&x)[kTiles][4], uint32_t tile) {
  const uint32_t at = tile + lane_direct(row_bytes(64)) + threadIdx.x / 32 % 4 * 32;
#pragma unroll
  for (int n = 0; n < kTiles / 2; ++n) {
    uint32_t r[4], lo[4];
    as_operand<kLo>(r, lo, x[2 * n], x[2 * n + 1]);
    stmatrix_transposed(at + n * 16 * row_bytes(64), kLo ? lo : r);
  }
}
// The first `rows` rows of that tile, `step` apart, by the threads of a warp group. The copy engine
// takes those of a warp one after the other, so each warp has its share, one half of its lanes.
__device__ __forceinline__ void send_rows(uint16_t* to, int64_t step, uint32_t tile, int rows) {
  const int i = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32;
  if (threadIdx.x % 32 < 16 && i < rows) send(to + i * step, tile + i * row_bytes(64), 128);
}

}  // namespace lrnn::kernels::cuda
