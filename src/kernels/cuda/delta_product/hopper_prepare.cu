#include "kernels/cuda/delta_product/hopper_squares.cuh"
#include "kernels/cuda/delta_product/prepare.cuh"

// T and P of all chunks at once, products on Hopper's warp-group instructions: the tensor cores
// read keys and queries in place, where mma.sync has every warp read all keys. Split operands take
// the way of prepare.cuh from there, others that of hopper_squares.cuh, whose bits the forward pass
// in one kernel has, too.
namespace lrnn::kernels::cuda {
namespace {

using namespace prepare;

// Bytes in shared memory. T takes the place of the keys when they are done, L that of the queries.
struct Places {
  static constexpr int kSquare = (int(sizeof(Square)) + 1023) / 1024 * 1024, q = kSquare,
                       vectors = q + int(sizeof(Square)),
                       decays = vectors + kVectorCount * kChunk * 4;
  static int bytes(bool gate) { return decays + (gate ? int(sizeof(Decays)) : 0); }
  static_assert(2 * kTileBytes <= int(sizeof(Square)));  // 128 channels of keys
};

template <int KT>
__global__ void __launch_bounds__(kThreads) hopper_chunks(DeltaProductInputs p, ChunkWork w) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& T = *reinterpret_cast<Square*>(memory);
  auto& L = *reinterpret_cast<Square*>(memory + Places::q);
  auto& vectors = *reinterpret_cast<float(*)[kVectorCount][kChunk]>(memory + Places::vectors);
  auto& decays = *reinterpret_cast<Decays*>(memory + Places::decays);  // with a gate
  const uint32_t k_at = shared_address(memory), q_at = k_at + Places::q;
  const Chunk z{p};
  pdl_trigger();
  if (z.at.count == 0) return;
  const int row0 = threadIdx.x / 32 * 16;

  fetch_tiles<KT, kChunk, kThreads>(threadIdx.x, k_at, z.keys(), p.k.step, z.at.count, int(p.K));
  if (w.P)
    fetch_tiles<KT, kChunk, kThreads>(threadIdx.x, q_at, z.reads(), p.q.token, z.queries.rows,
                                      int(p.K));
  copy_commit();
  fill_vectors(p, z, Scalars(p, z), vectors, decays);
  copy_wait<0>();
  wgmma::publish();
  __syncthreads();

  // Without queries this multiplies keys: a branch between the products would make the compiler
  // wait for them.
  float read[8][4], acc[8][4];
  wgmma::fence();
  rows_by_rows<true, KT>(read, w.P ? q_at : k_at, k_at);
  wgmma::commit();
  rows_by_rows<true, KT>(acc, k_at, k_at);
  wgmma::commit();
  wgmma::wait<1>();
  wgmma::hold(read);
  if (w.P && row0 < w.rows) write_P<true>(p, w, z, read, row0, decays);
  wgmma::wait<0>();
  wgmma::hold(acc);
  __syncthreads();  // keys and queries are read
  finish<true>(p, w, z, {vectors, decays, T, L}, acc, row0);
}

// ----------------------------------------------------------------------- bfloat16 operands
// Bytes in shared memory. When the products are done, blocks and T take the place of keys and
// queries.
template <int KT, bool kReads> struct FastPlaces {
  static constexpr int q = KT / 64 * kTileBytes, blocks = 0, diagonals = squares::kBlocksBytes,
                       T = 2 * kTileBytes, vectors = kReads && KT == 128 ? 2 * q : 3 * kTileBytes,
                       logs = vectors + kVectorCount * kChunk * 4, lefts = logs + kChunk * 4,
                       all = lefts + kChunk * 4;
  static_assert(diagonals + squares::kDiagonalBytes <= T && T + kTileBytes <= vectors);
};

// beta and the gates of a chunk, two micro-steps a lane of one warp.
template <bool kGates>
__device__ __forceinline__ void fill_vectors(const DeltaProductInputs& p, const Chunk& z,
                                             float* vectors, float* logs, float* lefts) {
  const int lane = threadIdx.x % 32;
  squares::Pair x{};
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    const int i = 2 * lane + u;
    if (i >= z.at.count) continue;
    const uint32_t m = uint32_t(z.at.first) + i, N = uint32_t(p.N), t = m / N, j = m - t * N;
    const int64_t token = z.span.b * p.T + z.span.t0 + t;
    x.beta[u] = static_cast<const float*>(p.beta)[(token * p.N + j) * p.H + z.h];
    if (x.beta[u] == 0) x.beta[u] = kSmallestBeta;
    if (kGates && j == 0) x.log[u] = static_cast<const float*>(p.log_gate)[token * p.H + z.h];
  }
  const auto put = [&](int which, float a, float b) {
    reinterpret_cast<float2*>(vectors + which * kChunk)[lane] = make_float2(a, b);
  };
  const auto last = [&](int r) { return r < z.queries.rows ? int(z.queries.at(r)) : -1; };
  put(kBeta, x.beta[0], x.beta[1]);
  if constexpr (kGates) {
    put(kGate, expf(x.log[0]), expf(x.log[1]));
    squares::put_decays(vectors, logs, lefts, x, float(p.scale), last);
  } else {
    const float scale = float(p.scale);
    put(kGate, 1, 1), put(kBefore, 1, 1), put(kAfter, 1, 1);
    put(kRead, last(2 * lane) < 0 ? 0.f : scale, last(2 * lane + 1) < 0 ? 0.f : scale);
  }
}

// This warp's 16 rows of P.
template <bool kGates>
__device__ __forceinline__ void write_P(const DeltaProductInputs& p, const ChunkWork& w,
                                        const Chunk& z, const squares::Squares<kGates>& of,
                                        const float (&reads)[8][4]) {
  const auto last = [&](int r) { return r < z.queries.rows ? int(z.queries.at(r)) : -1; };
  const int r = of.warp * 16 + of.g, rows[2] = {last(r), last(r + 8)};
  uint16_t* const P = w.P + z.index * w.rows * kChunk;
  of.make_P(reads, rows, last(of.warp * 16), kChunk, float(p.scale), [&](int b, const Tile& x) {
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<uint32_t*>(P + place_in<true>(r + half * 8, 2 * b + t) * 8 + 2 * of.c) =
            pack(x[t][2 * half], x[t][2 * half + 1]);
  });
}

// T as it lies in shared memory, zeros above the diagonal, and the vectors.
__device__ __forceinline__ void write_T(const ChunkWork& w, const Chunk& z, const uint4* T,
                                        const float* vectors) {
  uint4* const to = reinterpret_cast<uint4*>(w.T + z.index * kChunk * kChunk);
#pragma unroll
  for (int at = threadIdx.x; at < kChunk * kChunk / 8; at += kThreads) {
    const int i = at / 8, piece = (at ^ i) & 7;
    to[at] = piece / 2 <= i / 16 ? T[at] : make_uint4(0, 0, 0, 0);
  }
  for (int i = threadIdx.x; i < kVectorCount * kChunk; i += kThreads)
    w.vectors[z.index * kVectorCount * kChunk + i] = vectors[i];
}

template <int KT, bool kGates, bool kReads>
__global__ void __launch_bounds__(kThreads, kReads ? 5 : 6)
    hopper_fast_chunks(DeltaProductInputs p, ChunkWork w) {
  extern __shared__ __align__(1024) unsigned char memory[];
  using At = FastPlaces<KT, kReads>;
  const uint32_t k_at = shared_address(memory), q_at = k_at + At::q;
  float* const vectors = reinterpret_cast<float*>(memory + At::vectors);
  float* const logs = reinterpret_cast<float*>(memory + At::logs);
  float* const lefts = reinterpret_cast<float*>(memory + At::lefts);
  const Chunk z{p};
  pdl_trigger();
  if (z.at.count == 0) return;

  fetch_tiles<KT, kChunk, kThreads>(threadIdx.x, k_at, z.keys(), p.k.step, z.at.count, int(p.K));
  if constexpr (kReads)
    fetch_tiles<KT, kChunk, kThreads>(threadIdx.x, q_at, z.reads(), p.q.token, z.queries.rows,
                                      int(p.K));
  copy_commit();
  if (threadIdx.x < 32) fill_vectors<kGates>(p, z, vectors, logs, lefts);
  copy_wait<0>();
  wgmma::publish();
  __syncthreads();

  const squares::Squares<kGates> of{vectors + kBeta * kChunk,
                                    logs,
                                    lefts,
                                    {k_at + At::blocks},
                                    reinterpret_cast<float*>(memory + At::diagonals)};
  float reads[8][4], A[8][4];
  wgmma::fence();
  if constexpr (kReads) {
    rows_by_rows<true, KT>(reads, q_at, k_at);
    wgmma::commit();
  }
  rows_by_rows<true, KT>(A, k_at, k_at);
  wgmma::commit();
  if constexpr (kReads) {
    wgmma::wait<1>();
    wgmma::hold(reads);
    if (of.warp * 16 < w.rows) write_P(p, w, z, of, reads);
  }
  wgmma::wait<0>();
  wgmma::hold(A);
  __syncthreads();  // keys and queries are read
  of.put_L(A);
  of.invert_diagonal();
  __syncthreads();
  of.solve(k_at + At::T);
  __syncthreads();
  write_T(w, z, reinterpret_cast<const uint4*>(memory + At::T), vectors);
  if (kGates && threadIdx.x < kChunk) w.logs[z.index * kChunk + threadIdx.x] = logs[threadIdx.x];
}

template <int KT, bool kGates, bool kReads>
void launch_fast(const DeltaProductInputs& p, const ChunkWork& w, cudaStream_t stream) {
  auto* kernel = hopper_fast_chunks<KT, kGates, kReads>;
  constexpr int kBytes = FastPlaces<KT, kReads>::all;
  allow_shared(kernel, kBytes);
  kernel<<<unsigned(chunk_slots(p, kChunk) * p.H), kThreads, kBytes, stream>>>(p, w);
  check_launch("delta_product");
}

template <int KT>
void launch_prepare(const DeltaProductInputs& p, const ChunkWork& w, cudaStream_t stream) {
  if (!w.split)
    return p.log_gate ? (w.P ? launch_fast<KT, true, true>(p, w, stream)
                             : launch_fast<KT, true, false>(p, w, stream))
                      : (w.P ? launch_fast<KT, false, true>(p, w, stream)
                             : launch_fast<KT, false, false>(p, w, stream));
  const int bytes = Places::bytes(p.log_gate);
  allow_shared(hopper_chunks<KT>, bytes);
  hopper_chunks<KT><<<unsigned(chunk_slots(p, kChunk) * p.H), kThreads, bytes, stream>>>(p, w);
  check_launch("delta_product");
}

}  // namespace

void hopper_prepare(const DeltaProductInputs& p, const ChunkWork& w, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  p.K <= 64 ? launch_prepare<64>(p, w, on) : launch_prepare<128>(p, w, on);
}

}  // namespace lrnn::kernels::cuda
